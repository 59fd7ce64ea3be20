import { queryOptions } from "@tanstack/react-query";

import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import type { Measurement } from "../api/types";

/** Scores of a model on the server's validation films; null if the model was not measured yet. */
export const measurementQuery = (model: string) =>
  queryOptions({
    queryKey: ["worth", model],
    queryFn: async (): Promise<Measurement | null> => {
      try {
        return await unwrap(client.GET("/api/v1/models/{model}/worth", { params: { path: { model } } }));
      } catch (error) {
        if (error instanceof Problem && error.code === "not_measured") return null;
        throw error;
      }
    },
  });

export const evaluationQuery = (model: string) =>
  queryOptions({
    queryKey: ["evaluation", model],
    queryFn: () => unwrap(client.GET("/api/v1/models/{model}/evaluation", { params: { path: { model } } })),
  });
