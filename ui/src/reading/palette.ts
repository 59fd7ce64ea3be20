/** Colours that people with any colour vision tell apart (Okabe and Ito), the same as in the package's pictures. */
const OKABE_ITO = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"] as const;

/** Of the concept at this position of the model's list; with more of them than colours, names must tell. */
export function colourAt(position: number): string {
  return OKABE_ITO[Math.max(position, 0) % OKABE_ITO.length] ?? OKABE_ITO[0];
}
