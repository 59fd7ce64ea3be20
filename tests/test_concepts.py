import pytest

from medgrape.concepts import BUILT_IN, Concept, ConceptError, ConceptSet, slug


@pytest.mark.parametrize(("name", "count"), [("tbx11k", 3), ("nih", 14), ("vindr", 22)])
def test_the_built_in_vocabularies_are_complete_and_described(name, count):
    concepts = ConceptSet.built_in(name)
    assert len(concepts) == count
    assert all(len(concept.description.split()) >= 8 and concept.description.endswith(".") for concept in concepts)
    assert len({concept.description for concept in concepts}) == count


def test_tbx11k_has_the_papers_three_sentences():
    first, second, third = (concept.description for concept in ConceptSet.built_in("tbx11k"))
    assert first.startswith("Active pulmonary tuberculosis with cavitary lesions, nodular opacities")
    assert second.startswith("Healed or inactive tuberculosis with calcified granulomas, fibrous scarring")
    assert third.startswith("Pulmonary tuberculosis presenting as patchy or confluent consolidation")


@pytest.mark.parametrize(
    ("vocabulary", "published", "name"),
    [
        ("tbx11k", "ObsoletePulmonaryTuberculosis", "obsolete_tb"),
        ("nih", "Pleural_Thickening", "pleural_thickening"),
        ("nih", "Infiltrate", "infiltration"),
        ("vindr", "Nodule/Mass", "nodule_mass"),
        ("vindr", "Enlarged PA", "enlarged_pulmonary_artery"),
    ],
)
def test_published_labels_find_their_concept(vocabulary, published, name):
    assert ConceptSet.built_in(vocabulary).published(published) == name


def test_an_unknown_label_has_no_concept():
    assert ConceptSet.built_in("nih").published("Broken heart") is None


def test_a_mistyped_concept_gets_the_nearest_name():
    with pytest.raises(ConceptError, match="did you mean 'pneumonia'"):
        ConceptSet.built_in("nih").index("pnumonia")


def test_two_concepts_with_the_same_name_are_refused():
    with pytest.raises(ConceptError, match="Two concepts"):
        ConceptSet((Concept.named("Cavity"), Concept.named("cavity")))


@pytest.mark.parametrize("name", ["", "Cavity", "1st", "a b", "a" * 64])
def test_a_name_that_is_no_valid_file_name_is_refused(name):
    with pytest.raises(ConceptError):
        Concept(name, "Title", "Description.")


def test_a_concept_without_a_description_is_refused():
    with pytest.raises(ConceptError, match="description"):
        Concept("cavity", "Cavity", " ")


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_vocabulary_is_the_same_after_writing_and_reading(name):
    concepts = ConceptSet.built_in(name)
    assert ConceptSet.from_tables(concepts.to_tables()) == concepts


def test_an_unknown_vocabulary_or_a_half_written_concept_is_refused():
    with pytest.raises(ConceptError, match="tbx11k, nih, vindr"):
        ConceptSet.built_in("mimic")
    with pytest.raises(ConceptError, match="a name, a title, a description"):
        ConceptSet.from_tables([{"name": "cavity"}])


def test_any_label_gives_a_valid_name():
    assert slug("Nodule/Mass (left)") == "nodule_mass_left"
    assert slug("3rd rib") == "finding_3rd_rib"
