import type { NodeTypeResponse } from "@/api/types";

/** What somebody who adds a step wants to do, with the types for it, the most used first. */
const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ["Ask a model", ["agent", "llm", "planner", "chat"]],
  ["Begin", ["start", "user_input", "chat_start", "webhook", "schedule", "sse"]],
  ["Choose a way", ["if", "switch", "conditional", "approval", "merge", "wait"]],
  ["Repeat and reuse", ["loop", "while", "inner", "call_tool"]],
  ["Fetch and tell", ["fetch", "send_message", "webhook_reply"]],
  ["Values", ["text", "transform", "json", "number", "boolean", "parser"]],
  [
    "Link into agents",
    ["tool", "http_tool", "mcp_server", "flow_tool", "toolset", "model", "client"],
  ],
  ["End", ["end", "void"]],
];
const OTHERS = "Other";

export type TypeGroup = { label: string; types: readonly NodeTypeResponse[] };

/** Returns the types in groups; while one searches, in one list, what fits best first. */
export function rankTypes(types: readonly NodeTypeResponse[], filter: string): TypeGroup[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length > 0) {
    const ranked = types
      .flatMap((type) => {
        const scores = words.map((word) => scoreOf(type, word));
        return scores.includes(null) ? [] : [{ type, score: sum(scores) }];
      })
      .sort((a, b) => a.score - b.score);
    return ranked.length > 0 ? [{ label: "What fits", types: ranked.map(({ type }) => type) }] : [];
  }
  const byName = new Map(types.map((type) => [type.node_type, type]));
  const groups = GROUPS.map(([label, names]) => ({
    label,
    types: names.flatMap((name) => byName.get(name) ?? []),
  }));
  const known = new Set(GROUPS.flatMap(([, names]) => names));
  const others = types.filter(({ node_type }) => !known.has(node_type));
  return [...groups, { label: OTHERS, types: others }].filter((group) => group.types.length > 0);
}

/** Returns how far a word is from being the name of a type; null where it is nowhere in it. */
function scoreOf({ node_type, summary, purpose }: NodeTypeResponse, word: string): number | null {
  const name = node_type.toLowerCase();
  const places = [
    name === word,
    name.startsWith(word),
    name.split("_").some((part) => part.startsWith(word)),
    name.includes(word),
    summary.toLowerCase().split(/\W+/).includes(word),
    summary.toLowerCase().includes(word),
    purpose.toLowerCase().includes(word),
  ];
  const found = places.indexOf(true);
  return found < 0 ? null : found;
}

function sum(scores: readonly (number | null)[]): number {
  return scores.reduce<number>((total, score) => total + (score ?? 0), 0);
}
