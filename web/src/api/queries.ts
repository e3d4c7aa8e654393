import { infiniteQueryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { isEnded } from "@/api/executionSummary";
import { ApiError, call, NETWORK_FAILURE } from "@/api/http";
import { type ExecutionFilters, type PlanFilters, queryKeys } from "@/api/queryKeys";
import type { Operations, PlanSummary } from "@/api/types";

const ACTIVE_REFRESH_MS = 5_000;
const REQUESTS_REFRESH_MS = 10_000;
const DOWNLOAD_REFRESH_MS = 1_000;
const CATALOG_STALE_MS = 60_000;

/** Return whether to retry a failed query: only if the service was not reached or not ready. */
export function retryQuery(failures: number, error: unknown): boolean {
  if (failures >= 3 || !(error instanceof ApiError)) return false;
  return error.code === NETWORK_FAILURE || error.status === 429 || error.status === 503;
}

// -- plans ------------------------------------------------------------------------------------------

/** Plans, with a name and without, newest first, page by page; `isLive` refreshes them while one on the first page runs. */
export function usePlans(filters: PlanFilters = {}, { isLive = false } = {}) {
  return useInfiniteQuery(
    infiniteQueryOptions({
      queryKey: queryKeys.plans(filters),
      queryFn: ({ pageParam, signal }) =>
        call("listPlans", { query: { ...filters, cursor: pageParam }, signal }),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      refetchInterval: ({ state }) =>
        isLive && state.data?.pages[0]?.plans.some(({ status }) => status === "executing")
          ? ACTIVE_REFRESH_MS
          : false,
    }),
  );
}

export function usePlan(planId: string | null) {
  return useQuery({
    queryKey: queryKeys.plan(planId ?? ""),
    queryFn: ({ signal }) => call("getPlan", { path: { plan_id: planId ?? "" }, signal }),
    enabled: planId !== null,
  });
}

/** The revisions of a plan, newest first. */
export function useRevisions(planId: string | null) {
  return useQuery({
    queryKey: queryKeys.revisions(planId ?? ""),
    queryFn: ({ signal }) => call("listRevisions", { path: { plan_id: planId ?? "" }, signal }),
    enabled: planId !== null,
  });
}

/** A revision of a plan, with its graph. It never changes. */
export function useRevision(planId: string, revision: number) {
  return useQuery({
    queryKey: queryKeys.revision(planId, revision),
    queryFn: ({ signal }) => call("getRevision", { path: { plan_id: planId, revision }, signal }),
    enabled: revision > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What differs between two revisions of a plan. */
export function useRevisionDiff(planId: string, revision: number, to: number) {
  return useQuery({
    queryKey: queryKeys.revisionDiff(planId, revision, to),
    queryFn: ({ signal }) =>
      call("diffRevisions", {
        path: { plan_id: planId, revision },
        query: { to },
        signal,
      }),
    enabled: revision > 0 && revision !== to,
  });
}

// -- executions -------------------------------------------------------------------------------------

/**
 * Executions with their digests, newest first, page by page; refreshed while one
 * on the first page is active. `counts` are on the first page.
 */
export function useExecutions({ counts, ...filters }: ExecutionFilters = {}) {
  return useInfiniteQuery({
    queryKey: queryKeys.executions({ ...filters, ...(counts && { counts }) }),
    queryFn: ({ pageParam, signal }) =>
      call("listExecutions", {
        query: {
          digest: true,
          ...filters,
          ...(counts && pageParam === null && { counts }),
          cursor: pageParam,
        },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) =>
      state.data?.pages[0]?.executions.some((each) => !isEnded(each)) ? ACTIVE_REFRESH_MS : false,
  });
}

/** The newest executions, read again and again while nobody sees the page, too: one that ends later than so many others
 * began is not among them. */
export function useWatchedExecutions() {
  return useQuery({
    queryKey: [...queryKeys.allExecutions, "watched"],
    queryFn: ({ signal }) => call("listExecutions", { query: { digest: true, limit: 50 }, signal }),
    refetchInterval: 15_000,
    refetchIntervalInBackground: true,
  });
}

/** What was spent; counted when runs pause or end. */
export function useSpend(query: Operations["getSpend"]["query"]) {
  return useQuery({
    queryKey: queryKeys.spend(query),
    queryFn: ({ signal }) => call("getSpend", { query, signal }),
  });
}

/** The newest completed execution of a plan, or null. */
export function useLastCompleted(planId: string | null) {
  return useQuery({
    queryKey: queryKeys.lastCompleted(planId ?? ""),
    queryFn: async ({ signal }) => {
      const query = { plan_id: planId, status: "completed", limit: 1 } as const;
      const { executions } = await call("listExecutions", { query, signal });
      return executions[0] ?? null;
    },
    enabled: planId !== null,
  });
}

/** Newest runs of a plan that are looked through for one in which a step ran. */
const RUNS_LOOKED_THROUGH = 5;
const STARTED: ReadonlySet<string> = new Set([
  "running",
  "retrying",
  "waiting",
  "completed",
  "failed",
]);
/** While a step that is looked at runs. */
const STEP_REFRESH_MS = 1_000;

/** The newest run of a plan in which a step ran, and the step in it; null where it never did. */
export function useLastRunOf(planId: string, nodeId: string) {
  return useQuery({
    queryKey: queryKeys.lastRunOf(planId, nodeId),
    queryFn: async ({ signal }) => {
      const query = { plan_id: planId, limit: RUNS_LOOKED_THROUGH };
      const { executions } = await call("listExecutions", { query, signal });
      for (const run of executions) {
        const path = { execution_id: run.execution_id, path: nodeId };
        // A revision before may not have had the step.
        const node = await call("getNode", { path, signal }).catch(() => null);
        if (node && STARTED.has(node.status)) return { run, node };
      }
      return null;
    },
    refetchInterval: ({ state }) =>
      state.data && !isEnded(state.data.run) ? STEP_REFRESH_MS : false,
  });
}

export function useExecution(executionId: string | null) {
  return useQuery({
    queryKey: queryKeys.execution(executionId ?? ""),
    queryFn: ({ signal }) =>
      call("getExecution", { path: { execution_id: executionId ?? "" }, signal }),
    enabled: executionId !== null,
  });
}

/** Whether nobody runs an execution whose status says that it runs; false without one. */
export function useInterrupted(executionId: string | null): boolean {
  const { data } = useExecution(executionId);
  return executionId !== null && data?.interrupted === true;
}

/** The whole execution as one document; it may be megabytes. */
export function useDocument(executionId: string, enabled = true) {
  return useQuery({
    queryKey: queryKeys.document(executionId),
    queryFn: ({ signal }) => call("getDocument", { path: { execution_id: executionId }, signal }),
    enabled,
  });
}

/** The results of the nodes, as text. */
export function useResult(executionId: string, enabled = true) {
  return useQuery({
    queryKey: queryKeys.result(executionId),
    queryFn: ({ signal }) => call("getResult", { path: { execution_id: executionId }, signal }),
    enabled,
  });
}

/** Inputs, prompt, outputs, error and usage of one node. */
export function useNode(executionId: string, path: string, enabled = true) {
  return useQuery({
    queryKey: queryKeys.node(executionId, path),
    queryFn: ({ signal }) => call("getNode", { path: { execution_id: executionId, path }, signal }),
    enabled,
  });
}

/** One node, with the calls of a number whole; what is recorded of them never changes. */
export function useCallOfNode(executionId: string, path: string, ordinal: number) {
  return useQuery({
    queryKey: queryKeys.callOfNode(executionId, path, ordinal),
    queryFn: ({ signal }) =>
      call("getNode", {
        path: { execution_id: executionId, path },
        query: { call: ordinal },
        signal,
      }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Why a node ran, did not run, or waits. */
export function useExplain(executionId: string, path: string, enabled = true) {
  return useQuery({
    queryKey: queryKeys.explain(executionId, path),
    queryFn: ({ signal }) =>
      call("explainNode", { path: { execution_id: executionId, path }, signal }),
    enabled,
  });
}

/**
 * The open requests of all executions to people, the soonest deadline first, page by page; read
 * again every `refreshMs`, and whenever the page gets the focus.
 */
export function useRequests(refreshMs = REQUESTS_REFRESH_MS) {
  return useInfiniteQuery({
    queryKey: queryKeys.requests,
    queryFn: ({ pageParam, signal }) =>
      call("listPendingRequests", { query: { cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: refreshMs,
    refetchOnWindowFocus: "always",
  });
}

/** What people were asked and what was answered, the newest answer first, page by page. */
export function useAnsweredRequests() {
  return useInfiniteQuery({
    queryKey: queryKeys.answeredRequests,
    queryFn: ({ pageParam, signal }) =>
      call("listPendingRequests", { query: { status: "answered", cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchOnWindowFocus: "always",
  });
}

/** What differs between two executions. */
export function useDiff(a: string | null, b: string | null) {
  return useQuery({
    queryKey: queryKeys.diff(a ?? "", b ?? ""),
    queryFn: ({ signal }) =>
      call("diffExecutions", { path: { execution_id: a ?? "", other_id: b ?? "" }, signal }),
    enabled: a !== null && b !== null,
  });
}

// -- flows ------------------------------------------------------------------------------------------

/** The newest plans that have a name, to choose one. */
export function useFlows(): readonly PlanSummary[] {
  return usePlans({ named: true }).data?.pages.flatMap((page) => page.plans) ?? [];
}

/** A flow in the revision that callers start, or in another one. */
export function useFlow(flowId: string | null, revision: number | null = null) {
  return useQuery({
    queryKey: queryKeys.flowRevision(flowId ?? "", revision),
    queryFn: ({ signal }) =>
      call("getFlow", { path: { plan_id: flowId ?? "" }, query: { revision }, signal }),
    enabled: flowId !== null,
  });
}

/** The saved inputs of a flow, with what does not fit it any more. */
export function useInputSets(flowId: string) {
  return useQuery({
    queryKey: queryKeys.inputSets(flowId),
    queryFn: ({ signal }) => call("listInputSets", { path: { plan_id: flowId }, signal }),
  });
}

// -- catalogues -------------------------------------------------------------------------------------

/** The providers, and why one cannot be used; refreshed while a model is downloaded. */
export function useProviders() {
  return useQuery({
    queryKey: queryKeys.providers,
    queryFn: ({ signal }) => call("listProviders", { signal }),
    staleTime: CATALOG_STALE_MS,
    refetchInterval: ({ state }) =>
      state.data?.details.some((each) => each.download) ? DOWNLOAD_REFRESH_MS : false,
  });
}

export function useNodeTypes() {
  return useQuery({
    queryKey: queryKeys.nodeTypes,
    queryFn: ({ signal }) => call("listNodeTypes", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The tools that the operator made available. */
export function useTools() {
  return useQuery({
    queryKey: queryKeys.tools,
    queryFn: ({ signal }) => call("listTools", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The MCP servers that the operator has set up. */
export function useMcpServers() {
  return useQuery({
    queryKey: queryKeys.mcpServers,
    queryFn: ({ signal }) => call("listMcpServers", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useLimits() {
  return useQuery({
    queryKey: queryKeys.limits,
    queryFn: ({ signal }) => call("listLimits", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The links to an execution that still open something, newest first. */
export function useLinks(executionId: string) {
  return useQuery({
    queryKey: queryKeys.links(executionId),
    queryFn: ({ signal }) => call("listLinks", { query: { execution_id: executionId }, signal }),
  });
}

/** How often lists of what comes by itself are read again. */
const COMING_MS = 5_000;

/** The triggers with their last deliveries, newest first, page by page. */
export function useTriggers() {
  return useInfiniteQuery({
    queryKey: queryKeys.triggers,
    queryFn: ({ pageParam, signal }) =>
      call("listTriggers", { query: { cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: COMING_MS,
  });
}

/** The notifications that nobody accepted, newest first, page by page. */
export function useDeadNotifications() {
  return useInfiniteQuery({
    queryKey: queryKeys.deadNotifications,
    queryFn: ({ pageParam, signal }) =>
      call("listNotifications", { query: { status: "dead", cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: COMING_MS,
  });
}

/** The URLs that are notified of executions. */
export function useNotificationTargets() {
  return useQuery({
    queryKey: queryKeys.notificationTargets,
    queryFn: ({ signal }) => call("listNotificationTargets", { signal }),
  });
}
