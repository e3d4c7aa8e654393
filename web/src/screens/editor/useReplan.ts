import { useEffect, useRef, useState } from "react";
import { ApiError, NETWORK_FAILURE, send } from "@/api/http";
import { serverEvents } from "@/api/sse";
import type { GraphDocument, PlanStreamEvent, ReplanResponse } from "@/api/types";
import { readJson, writeJson } from "@/json";

/** How far a model is with the change of a run. */
export type Replan =
  | { kind: "idle"; error?: Error }
  /** `startedAt` in ms since 1970; `written` is what there is of it, see `writtenGraph`. */
  | { kind: "writing"; startedAt: number; written: string }
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
    const startedAt = Date.now();
    const grow = (written: string) =>
      !signal.aborted && setState({ kind: "writing", startedAt, written });
    grow("");
    try {
      const proposal = await writeChange(executionId, request, signal, grow);
      if (!signal.aborted) setState({ kind: "proposed", proposal, before: latest.current });
    } catch (fault) {
      const error = fault instanceof Error ? fault : new Error(String(fault));
      if (!signal.aborted) setState({ kind: "idle", error });
    }
  };
  return { state, write, cancel };
}

/** The events with a part of the change; the others have its text, or its end. */
const PARTS: ReadonlySet<string> = new Set(["node", "edge", "operation", "repair"]);

/** Has a change written, and says how far it is; see `writtenGraph`. */
async function writeChange(
  executionId: string,
  request: string,
  signal: AbortSignal,
  onWritten: (written: string) => void,
): Promise<ReplanResponse> {
  let written = "";
  for await (const { event, data } of replanEvents(executionId, request, signal)) {
    if (event === "proposal") return data;
    if (event === "problem" || event === "server_draining")
      throw new ApiError(data.code, data.detail, data.status, data);
    if (!PARTS.has(event)) continue;
    written += `${writeJson({ kind: event, ...data })}\n`;
    onWritten(written);
  }
  throw new ApiError(NETWORK_FAILURE, "The connection broke before the change was complete.", 0);
}

/** Yields the events until the last one, or until the connection breaks. */
async function* replanEvents(
  executionId: string,
  request: string,
  signal: AbortSignal,
): AsyncGenerator<PlanStreamEvent> {
  const path = { execution_id: executionId };
  const parts = { path, body: { request, dry_run: true }, signal, query: { stream: true } };
  const response = await send("replanExecution", parts);
  try {
    for await (const batch of serverEvents(response)) {
      for (const { event, data } of batch) yield { event, data: readJson(data) } as PlanStreamEvent;
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
}
