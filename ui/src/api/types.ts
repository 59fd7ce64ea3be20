/** Short names for what goes over the wire. */
import type { components } from "./schema";

type Schemas = components["schemas"];
export type { Check } from "./problems";
export type { Me, Role } from "./session";

export type Film = Schemas["FilmTold"];
export type FilmPage = Schemas["FilmPage"];
export type FilmTaken = Schemas["FilmTaken"];
export type Study = Schemas["StudyTold"];
export type StudyMoved = Schemas["StudyMoved"];
export type Step = Schemas["StepTold"];
export type Correction = Schemas["CorrectionTold"];
export type Explanation = Schemas["ExplanationTold"];
export type ConceptSeen = Explanation["concepts"][number];
export type ExemplarSeen = ConceptSeen["exemplars"][number];
export type Attention = NonNullable<Explanation["attention"]>[number];
export type Model = Schemas["ModelTold"];
export type ModelCard = Schemas["ModelCard"];
export type Concept = Schemas["ConceptTold"];
export type Prototype = Schemas["PrototypeTold"];
export type Job = Schemas["JobTold"];
export type LogEvent = Schemas["EventTold"];
export type EventPage = Schemas["EventPage"];
export type Verdict = Schemas["VerdictTold"];
export type Shares = Record<string, number>;
