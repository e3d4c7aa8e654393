import type { ExecutionDigest, GraphDocument, PendingRequest } from "@/api/types";
import { actionLabel, type RequestFields } from "@/inspector/requestFields";
import { BUDGET } from "@/stream/budget";
import { askingPath } from "@/stream/calls";
import { formatAmount, formatInstant, formatLeft } from "@/ui/format";

/** The kind of the request of a run that asks before its first step. */
export const PLAN_APPROVAL = "plan-approval";

/** The kind of the request of a run about a change of its plan. */
export const PLAN_CHANGE = "plan-change";

/** The kind of the request about what a crash has interrupted. */
const INTERRUPTED = "interrupted";

/** Below so many seconds a deadline is near. */
const SOON_S = 300;

/** What tells a request from those of all other runs: "EXECUTION/REQUEST". */
export function keyOf({ execution_id, request_id }: PendingRequest): string {
  return `${execution_id}/${request_id}`;
}

/** The name of what asks. */
export function titleOf(request: PendingRequest, { kind, tool }: RequestFields): string {
  if (kind === BUDGET) return "Raise the budget";
  if (kind === PLAN_CHANGE) return "Change the plan";
  if (tool) return kind === INTERRUPTED ? `${tool.name} was cut off` : `Call ${tool.name}`;
  return kind === PLAN_APPROVAL ? "Approve the plan" : request.node_name || request.path || "Step";
}

/** The name of the agent that wants to call a tool: of its step, or its id where its graph is not known. */
export function agentOf({ path, request }: PendingRequest, graph: GraphDocument | null): string {
  const agent = askingPath(path ?? "", request);
  const id = agent.slice(agent.lastIndexOf("/") + 1);
  return graph?.nodes.find((node) => node.id === id)?.name || id;
}

/** The name of the run that waits. */
export function runTitleOf({ title, user_prompt }: PendingRequest): string {
  return title || user_prompt || "Run";
}

export type TimeLeft = { words: string; isSoon: boolean; share: number | null };

/** Returns how long an answer is waited for; `share` is that of the whole time. */
export function timeLeft({ deadline, since }: TimeOfRequest, now: number): TimeLeft {
  if (deadline === null) return { words: "no limit", isSoon: false, share: null };
  const left = (Date.parse(deadline) - now) / 1000;
  const whole = (Date.parse(deadline) - Date.parse(since)) / 1000;
  return {
    words: formatLeft(left),
    isSoon: left < SOON_S,
    share: Math.min(1, Math.max(0, left / whole)),
  };
}

type TimeOfRequest = Pick<PendingRequest, "deadline" | "since">;

/** Returns what happens if nobody answers. */
export function timeoutWords({ deadline, since }: TimeOfRequest, action: string | null): string {
  if (deadline === null) return "It waits until somebody answers.";
  const by = `If nobody answers by ${formatInstant(new Date(deadline), new Date(since))}, `;
  return action ? `${by}it counts as “${actionLabel(action)}”.` : `${by}it is over.`;
}

export type NextStep = { action: string; words: string };

/** What each decision of a run before its first step does. */
const PLAN_DECISIONS: Record<string, string> = {
  approve: "The first steps start.",
  reject: "The run is cancelled. No step has run.",
  edit: "You change the plan; the changed plan asks again before it runs.",
};

/** What each decision about a change of the plan of a run does. */
const CHANGE_DECISIONS: Record<string, string> = {
  approve: "The run goes on with the changed plan.",
  reject: "The plan stays as it is. The run goes on, or ends, without the change.",
};

/** What each decision about a budget does. */
const BUDGET_DECISIONS: Record<string, string> = {
  raise: "The waiting steps go on, within the new limits.",
  stop: "The run is cancelled; its results so far are kept.",
};

/** What each decision about a step does that a crash has interrupted. */
const INTERRUPTED_DECISIONS: Record<string, string> = {
  run_again: "The step runs once more, whatever it has done already.",
  give_result: "The step does not run; what you enter is its result.",
  fail: "The step fails.",
};

/** What each decision about the call of a tool does. */
const CALL_DECISIONS: Record<string, string> = {
  approve: "The tool is called with these arguments.",
  reject: "The tool is not called. The agent reads your note and goes on.",
};

/** What each decision about a call does that a crash has interrupted. */
const INTERRUPTED_CALL_DECISIONS: Record<string, string> = {
  run_again: "The tool is called once more, whatever it has done already.",
  give_result: "The tool is not called; the agent takes what you enter as its result.",
  fail: "The agent fails.",
};

/** Returns what follows each decision; nothing where it cannot be told. */
export function nextSteps(
  { kind, tool, actions }: RequestFields,
  path: string | null,
  graph: GraphDocument | null,
): NextStep[] {
  const known = tool ? ofCall(kind) : DECISIONS[kind];
  if (known) return actions.map((action) => ({ action, words: known[action] ?? "" }));
  if (kind !== "approval" || !graph?.nodes.some((node) => node.id === path)) return [];
  const names = new Map(graph.nodes.map(({ id, name }) => [id, name || id]));
  const followers = actions.map((action) => [
    ...new Set(
      graph.edges
        .filter((edge) => edge.source === path && edge.sourceHandle === action)
        .map((edge) => names.get(edge.target) ?? edge.target),
    ),
  ]);
  const ofOthers = followers.some((each) => each.length > 0)
    ? " Steps that wait for another answer are skipped."
    : "";
  return actions.map((action, index) => ({
    action,
    words: comeNext(followers[index] ?? []) || `Nothing follows.${ofOthers}`,
  }));
}

const DECISIONS: Record<string, Record<string, string>> = {
  [PLAN_APPROVAL]: PLAN_DECISIONS,
  [PLAN_CHANGE]: CHANGE_DECISIONS,
  [BUDGET]: BUDGET_DECISIONS,
  [INTERRUPTED]: INTERRUPTED_DECISIONS,
};

function ofCall(kind: string): Record<string, string> {
  return kind === INTERRUPTED ? INTERRUPTED_CALL_DECISIONS : CALL_DECISIONS;
}

function comeNext(names: string[]): string {
  if (names.length === 0) return "";
  const last = names.at(-1);
  if (names.length === 1) return `${last} comes next.`;
  return `${names.slice(0, -1).join(", ")} and ${last} come next.`;
}

/** Returns how far a run is that waits. */
export function standInWords({ waves }: ExecutionDigest): string {
  const count = (status: string) => waves.reduce((sum, wave) => sum + (wave[status] ?? 0), 0);
  const running = count("running") + count("retrying");
  const meanwhile =
    running === 0
      ? "Nothing runs meanwhile."
      : `${formatAmount(running, "step")} ${running === 1 ? "runs" : "run"} meanwhile.`;
  const pending = count("pending");
  if (pending === 0) return `${meanwhile} No step is left after this one.`;
  return `${meanwhile} ${formatAmount(pending, "step")} ${pending === 1 ? "has" : "have"} not started.`;
}
