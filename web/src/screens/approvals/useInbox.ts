import { useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { useExecutions, useRequests } from "@/api/queries";
import type { ExecutionDigest, PendingRequest } from "@/api/types";
import { readRequest } from "@/inspector/requestFields";
import { keyOf, runTitleOf, titleOf } from "./requestWords";

/** How often the list is read again while it is shown, in ms. */
const REFRESH_MS = 3_000;
/** Runs whose shape is known; older ones are named only. */
const RUNS = 50;

/** The open requests, and the one that is looked at; its address has its key. */
export function useInbox() {
  const [parameters, setParameters] = useSearchParams();
  const [answered, setAnswered] = useState<ReadonlySet<string>>(new Set());
  const [filter, setFilter] = useState("");
  const query = useRequests(REFRESH_MS);
  const all = query.data?.pages.flatMap((page) => page.requests) ?? [];
  const open = all.filter((request) => !answered.has(keyOf(request)));
  const seen = useRef(new Map<string, PendingRequest>());
  for (const request of open) seen.current.set(keyOf(request), request);

  const inAddress = parameters.get("request");
  const first = useFirst(open);
  const key = inAddress ?? first.key;
  const list = open.filter((request) => fits(request, filter));
  const choose = (next: string | null) =>
    setParameters(next === null ? {} : { request: next }, { replace: inAddress !== null });
  return {
    query,
    list,
    open,
    filter,
    setFilter,
    key,
    /** It was chosen, not only the first of the list. */
    isChosen: inAddress !== null,
    /** As it was when it was seen last; null where it was never open on this page. */
    request: key === null ? null : (seen.current.get(key) ?? null),
    isOpen: open.some((request) => keyOf(request) === key),
    choose,
    markAnswered: (done: string) => {
      setAnswered((before) => new Set([...before, done]));
      first.forget();
      choose(null);
    },
  };
}

/** The request that was first when the page opened; it stays when another becomes more urgent. */
function useFirst(open: readonly PendingRequest[]) {
  const [key, setKey] = useState<string | null>(null);
  const [first] = open;
  if (key === null && first) setKey(keyOf(first));
  return { key, forget: () => setKey(null) };
}

/** Whether a request has the text in its step, its run or its question. */
export function fits(request: PendingRequest, filter: string): boolean {
  const fields = readRequest(request);
  return `${titleOf(request, fields)}\n${runTitleOf(request)}\n${fields.prompt}`
    .toLowerCase()
    .includes(filter.trim().toLowerCase());
}

/** How far the runs are that were made last, by id. */
export function useDigests(): ReadonlyMap<string, ExecutionDigest> {
  const runs = useExecutions({ limit: RUNS });
  const executions = runs.data?.pages.flatMap((page) => page.executions) ?? [];
  return new Map(
    executions.flatMap(({ execution_id, digest }) => (digest ? [[execution_id, digest]] : [])),
  );
}
