import type { DocumentNode, ForkPreviewResponse, GraphDocument } from "@/api/types";
import { formatAmount, formatUsd } from "@/ui/format";

const NAMES = new Intl.ListFormat("en");
/** More are counted. */
const MOST_NAMED = 3;

/** Returns what running only what has changed runs, reuses, and cost in the run before.
 *
 * @param nodes The steps as they ran then, once they are loaded.
 * @param at When that was. */
export function changedWords(
  { reused, runs, undecided }: ForkPreviewResponse,
  graph: GraphDocument,
  nodes: readonly RanNode[] | undefined,
  at: string,
): string {
  const again = new Set([...runs, ...undecided]);
  const isOne = reused.length === 1;
  const kept = `${formatAmount(reused.length, "result")} of the run of ${at} ${isOne ? "is" : "are"} reused`;
  const later = undecided.length > 0 && `${namesOf(undecided, graph)} if given something else`;
  const now = runs.length > 0 && `${namesOf(runs, graph)} ${runs.length === 1 ? "runs" : "run"}`;
  const runsThen = [now || "nothing runs at once", later].filter(Boolean).join(", then ");
  const cost = nodes && costOf(nodes, again);
  return `${kept}; ${runsThen}.${cost ? ` ${cost}` : ""}`;
}

type RanNode = Pick<DocumentNode, "path" | "usage" | "reused">;

/** Returns what the steps cost when they ran, those inside them included. */
function costOf(nodes: readonly RanNode[], again: ReadonlySet<string>): string {
  const ran = nodes.filter(({ path }) => again.has(path.split("[")[0] ?? ""));
  const tokens = ran.reduce((sum, { usage }) => sum + usage.input_tokens + usage.output_tokens, 0);
  const costs = ran.map(({ usage }) => usage.cost_usd);
  const isKnown = costs.some((cost) => cost !== null);
  const cost = costs.reduce((sum: number, each) => sum + Number(each ?? 0), 0);
  const isNew = [...again].some((id) => !ran.some(({ path, reused }) => path === id && !reused));
  if (tokens === 0) return isNew ? "What it costs is not known." : "";
  const words = [formatAmount(tokens, "token"), isKnown && cost > 0 && formatUsd(cost)];
  const them = `${again.size === 1 ? "It" : "They"} took ${words.filter(Boolean).join(", ")} then`;
  return isNew ? `${them}, without those that did not run.` : `${them}.`;
}

function namesOf(ids: readonly string[], { nodes }: GraphDocument): string {
  if (ids.length > MOST_NAMED) return formatAmount(ids.length, "step");
  const names = new Map(nodes.map(({ id, name }) => [id, name || id]));
  return NAMES.format(ids.map((id) => `“${names.get(id) ?? id}”`));
}
