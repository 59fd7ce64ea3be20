import { queryOptions } from "@tanstack/react-query";

import { client, told } from "../api/client";
import { Problem } from "../api/problems";
import type { components } from "../api/schema";

export type Worth = components["schemas"]["WorthTold"];
export type Evaluation = components["schemas"]["EvaluationTold"];
export type Report = components["schemas"]["ReportTold"];
export type Groups = components["schemas"]["AuditTold"];

/** What a model is worth on the server's data set; null while nobody has measured it. */
export const worthQuery = (model: string) =>
  queryOptions({
    queryKey: ["worth", model],
    queryFn: async (): Promise<Worth | null> => {
      try {
        return await told(client.GET("/api/v1/models/{model}/worth", { params: { path: { model } } }));
      } catch (error) {
        if (error instanceof Problem && error.code === "not_measured") return null;
        throw error;
      }
    },
  });

export const evaluationQuery = (model: string) =>
  queryOptions({
    queryKey: ["evaluation", model],
    queryFn: () => told(client.GET("/api/v1/models/{model}/evaluation", { params: { path: { model } } })),
  });
