import { useEffect, useRef, useState } from "react";
import { call } from "@/api/http";
import type { GraphDocument, ReplanResponse } from "@/api/types";

/** How far a model is with the change of a run. */
export type Replan =
  | { kind: "idle"; error?: Error }
  /** `startedAt` in ms since 1970. */
  | { kind: "writing"; startedAt: number }
  | { kind: "proposed"; proposal: ReplanResponse; before: Before };

/** The plan that a proposal changes, and how many changes of the run there were then. */
type Before = { graph: GraphDocument; changes: number };

/** Has a model write a change of a run; nothing of it is done before it is taken. */
export function useReplan(executionId: string, before: Before) {
  const [state, setState] = useState<Replan>({ kind: "idle" });
  const latest = useRef(before);
  latest.current = before;
  const asked = useRef<AbortController | null>(null);
  useEffect(() => () => asked.current?.abort(), []);
  const cancel = () => {
    asked.current?.abort();
    setState({ kind: "idle" });
  };
  const write = async (request: string) => {
    asked.current?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    asked.current = controller;
    setState({ kind: "writing", startedAt: Date.now() });
    try {
      const path = { execution_id: executionId };
      const proposal = await call("replanExecution", { path, body: { request }, signal });
      if (!signal.aborted) setState({ kind: "proposed", proposal, before: latest.current });
    } catch (fault) {
      const error = fault instanceof Error ? fault : new Error(String(fault));
      if (!signal.aborted) setState({ kind: "idle", error });
    }
  };
  return { state, write, cancel };
}
