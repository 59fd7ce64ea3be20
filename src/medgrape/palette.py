"""Colours that people with any colour vision tell apart (Okabe and Ito), used in every picture and plot."""

OKABE_ITO = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")


def colour(position: int) -> str:
    """The colour of concept or class number ``position``; with more of them than colours, names must tell."""
    return OKABE_ITO[position % len(OKABE_ITO)]
