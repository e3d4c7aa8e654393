import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { call } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import type { GraphDocument, Operations } from "@/api/types";
import { writeJson } from "@/json";

/** The diagnostics and the forecast of a graph, and of the goal that names its inputs; those of the graph
 * before stay until the next response. */
export function useCheck(graph: GraphDocument | null, goal = "") {
  const text = useText(graph);
  return useQuery({
    queryKey: queryKeys.check(text, goal),
    queryFn: ({ signal }) => {
      const body = { graph: { ...graph, ...(goal !== "" && { user_prompt: goal }) } };
      return call("checkGraph", { body, signal });
    },
    enabled: graph !== null,
    placeholderData: (previous) => previous,
    // Data that are selected share what is the same with the check before: of another graph, too.
    select: asItIs,
    gcTime: 30_000,
  });
}

function asItIs<Data>(data: Data): Data {
  return data;
}

/** What a fork of an ended run would reuse, and what it would run; a graph with errors has none. */
export function useForkPreview(
  executionId: string,
  body: NonNullable<Operations["previewFork"]["body"]>,
  enabled: boolean,
) {
  return useQuery({
    queryKey: queryKeys.forkPreview(executionId, useText(body)),
    queryFn: ({ signal }) =>
      call("previewFork", { path: { execution_id: executionId }, body, signal }),
    enabled,
    placeholderData: (previous) => previous,
    retry: false,
    gcTime: 30_000,
  });
}

/** What is asked about, as text: a key that is an object is written as text in every render. Places are left out:
 * moving a step asks nothing of the service. */
function useText(asked: unknown): string {
  return useMemo(
    () => writeJson(asked, 0, (key, value) => (key === "ui" ? undefined : value)),
    [asked],
  );
}
