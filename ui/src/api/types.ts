/** The page's names for the server's JSON. Only this module uses the schema names of the generated schema.d.ts. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type CurrentUser = Schemas["SessionTold"];
export type Role = CurrentUser["role"];

export type Film = Schemas["FilmTold"];
export type FilmPage = Schemas["FilmPage"];
export type UploadedFilm = Schemas["FilmTaken"];

export type Study = Schemas["StudyTold"];
export type Step = Schemas["StepTold"];
export type Correction = Schemas["CorrectionTold"];
export type Check = Schemas["CheckTold"];
export type Probabilities = Record<string, number>;

export type Explanation = Schemas["ExplanationTold"];
export type ConceptExplanation = Explanation["concepts"][number];
export type Exemplar = ConceptExplanation["exemplars"][number];
export type AttentionEdge = NonNullable<Explanation["attention"]>[number];

export type Model = Schemas["ModelTold"];
export type ModelCard = Schemas["ModelCard"];
export type Concept = Schemas["ConceptTold"];
export type Prototype = Schemas["PrototypeTold"];
export type Measurement = Schemas["WorthTold"];
export type EvaluationReport = Schemas["ReportTold"];
export type SubgroupReport = Schemas["AuditTold"];
export type Job = Schemas["JobTold"];

export type LogEvent = Schemas["EventTold"];
export type VerificationResult = Schemas["VerdictTold"];
