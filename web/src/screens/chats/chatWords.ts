import type { ChatSummary, ReplyUsage } from "@/api/types";
import { formatAmount, formatUsd } from "@/ui/format";

const LINES: Readonly<Record<string, string>> = {
  starting: "Answering",
  executing: "Answering",
  paused: "Waiting for you",
  failed: "The last answer failed",
  cancelled: "The last answer was stopped",
};

/** What a chat is called. */
export function chatTitle({ title }: Pick<ChatSummary, "title">): string {
  return title || "New chat";
}

/** The second line of a chat in the list: what its newest answer does, or who answers. */
export function chatLine({ status, plan_id, config }: ChatSummary): string {
  const line = status === null || status === undefined ? "" : (LINES[status] ?? "");
  return line || (plan_id ? "With a flow" : (config?.model ?? "With a model"));
}

/** "612 tokens, $0.0003" */
export function usageWords(usage: ReplyUsage | null): string {
  if (usage === null || usage.totalTokens === 0) return "";
  const tokens = formatAmount(usage.totalTokens, "token");
  return usage.costUsd === null ? tokens : `${tokens}, ${formatUsd(usage.costUsd)}`;
}
