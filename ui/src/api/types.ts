/** The page's names for the server's JSON. Only this module uses the schema names of the generated schema.d.ts. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type CurrentUser = Schemas["SessionResponse"];
export type Role = CurrentUser["role"];

export type Film = Schemas["FilmResponse"];
export type FilmPage = Schemas["FilmPage"];
export type UploadedFilm = Schemas["UploadResponse"];

export type Study = Schemas["StudyResponse"];
export type Step = Schemas["StepResponse"];
export type Correction = Schemas["CorrectionResponse"];
export type Check = Schemas["CheckResponse"];
export type Probabilities = Record<string, number>;

export type Explanation = Schemas["ExplanationResponse"];
export type ConceptExplanation = Explanation["concepts"][number];
export type Exemplar = ConceptExplanation["exemplars"][number];
export type AttentionEdge = NonNullable<Explanation["attention"]>[number];

export type Model = Schemas["ModelResponse"];
export type ModelCard = Schemas["ModelCard"];
export type Concept = Schemas["ConceptResponse"];
export type Prototype = Schemas["PrototypeResponse"];
export type Measurement = Schemas["AssessmentResponse"];
export type EvaluationReport = Schemas["EvaluationReport"];
export type SubgroupReport = Schemas["AuditReport"];
export type Job = Schemas["JobResponse"];

export type LogEvent = Schemas["EventResponse"];
export type VerificationResult = Schemas["VerificationResponse"];
