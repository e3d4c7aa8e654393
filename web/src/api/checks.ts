import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { call } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import type { GraphDocument } from "@/api/types";
import { writeJson } from "@/json";

/** The diagnostics and the forecast of a graph, and of the goal that names its inputs; those of the graph
 * before stay until the next response. */
export function useCheck(graph: GraphDocument | null, goal = "") {
  // As text: a key that is an object is written as text in every render. Places are not checked: moving a step asks
  // nothing of the service.
  const text = useMemo(
    () => writeJson(graph, 0, (key, value) => (key === "ui" ? undefined : value)),
    [graph],
  );
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
