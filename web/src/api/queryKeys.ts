import type { Operations } from "@/api/types";

export type PlanFilters = Omit<Operations["listPlans"]["query"], "cursor">;
export type ExecutionFilters = Omit<Operations["listExecutions"]["query"], "cursor">;

/**
 * The keys of all queries. A key invalidates all keys that begin with it: `["plans"]` all lists of
 * plans, `["executions"]` all lists of executions, `["execution", id]` everything about one
 * execution.
 */
export const queryKeys = {
  readiness: ["readiness"] as const,
  allPlans: ["plans"] as const,
  plans: (filters: PlanFilters) => ["plans", filters] as const,
  plan: (planId: string) => ["plan", planId] as const,
  revisions: (planId: string) => ["plan", planId, "revisions"] as const,
  revision: (planId: string, revision: number) => ["plan", planId, "revision", revision] as const,
  revisionDiff: (planId: string, revision: number, to: number) =>
    ["plan", planId, "diff", revision, to] as const,
  check: (graph: string, goal: string) => ["check", graph, goal] as const,

  allExecutions: ["executions"] as const,
  executions: (filters: ExecutionFilters) => ["executions", filters] as const,
  lastCompleted: (planId: string) => ["executions", "completed", planId] as const,
  lastRunOf: (planId: string, nodeId: string) => ["executions", "of", planId, nodeId] as const,
  execution: (executionId: string) => ["execution", executionId] as const,
  lineage: (executionId: string) => ["execution", executionId, "lineage"] as const,
  forkPreview: (executionId: string, body: string) =>
    ["execution", executionId, "fork", body] as const,
  document: (executionId: string) => ["execution", executionId, "document"] as const,
  result: (executionId: string) => ["execution", executionId, "result"] as const,
  node: (executionId: string, path: string) => ["execution", executionId, "node", path] as const,
  callOfNode: (executionId: string, path: string, ordinal: number) =>
    ["execution", executionId, "node", path, "call", ordinal] as const,
  explain: (executionId: string, path: string) =>
    ["execution", executionId, "explain", path] as const,
  diff: (a: string, b: string) => ["execution", a, "diff", b] as const,

  links: (executionId: string) => ["execution", executionId, "links"] as const,
  executionRequests: (executionId: string) => ["execution", executionId, "requests"] as const,

  allChats: ["chats"] as const,
  chat: (chatId: string) => ["chat", chatId] as const,

  requests: ["requests"] as const,
  answeredRequests: ["requests", "answered"] as const,

  flow: (flowId: string) => ["flow", flowId] as const,
  inputSets: (flowId: string) => ["flow", flowId, "input-sets"] as const,
  flowRevision: (flowId: string, revision: number | null) => ["flow", flowId, revision] as const,

  triggers: ["triggers"] as const,
  notifications: ["notifications"] as const,
  deadNotifications: ["notifications", "dead"] as const,
  notificationTargets: ["notifications", "targets"] as const,

  providers: ["providers"] as const,
  nodeTypes: ["node-types"] as const,
  tools: ["tools"] as const,
  mcpServers: ["mcp-servers"] as const,
  limits: ["limits"] as const,
  spend: (query: Operations["getSpend"]["query"]) => ["spend", query] as const,
};
