import type {
  DiagnosticResponse,
  GraphDocument,
  ImportedNode,
  ImportNote,
  ImportReport,
  ImportResponse,
  ImportSummary,
  NodeDocument,
} from "@/api/types";
import { formatAmount } from "@/ui/format";

/** What a file of each format is called, as the service and the command line call it. */
export const NOUNS: Readonly<Record<string, string>> = {
  agiraph: "an agiraph plan",
  agentflow: "an AgentFlow workflow",
  covalt: "a Covalt graph",
  "magic-agents": "a magic_agents flow",
  dify: "a Dify app",
  n8n: "an n8n workflow",
  langflow: "a Langflow flow",
  flowise: "a Flowise flow",
  sandcastle: "a Sandcastle workflow",
  mermaid: "a Mermaid flowchart",
  planwave: "a planwave graph",
};

/** planwave's own format: such a file is taken as it is. */
export const OWN_KIND = "planwave";

/** What became of a node of the source. */
export type ImportOutcome = keyof ImportSummary;

/** What became of the nodes of the source, in the order and the words of their counts. */
export const OUTCOMES: readonly { outcome: ImportOutcome; words: string }[] = [
  { outcome: "mapped", words: "as they were" },
  { outcome: "changed", words: "changed" },
  { outcome: "placeholder", words: "to be replaced" },
  { outcome: "dropped", words: "left out" },
];

/** A part of the source, and what is said of it. */
export type Entry = {
  /** Its place in the source. */
  pointer: string;
  /** What its program calls it; empty for the file as a whole. */
  name: string;
  kind: string;
  notes: readonly ImportNote[];
  /** The part as it was written, where it is lost. */
  text?: string;
  /** The nodes of the graph that it became; those in the graph of another one as `loop/step`. */
  targets: readonly string[];
};

/** Returns what a file of a format is called. */
export function nounOf(kind: string): string {
  return NOUNS[kind] ?? `a file of ${kind}`;
}

/** Returns what a file is: "This is an AgentFlow workflow 1: Triage". */
export function sourceWords({ kind, kind_version, title }: ImportReport): string {
  const version = kind_version ? `, version ${kind_version}` : "";
  return `This is ${nounOf(kind)}${version}${title ? `: ${title}` : "."}`;
}

/** Returns the nodes of the source that have an outcome. */
export function entriesOf(report: ImportReport, outcome: ImportOutcome): Entry[] {
  return report.nodes.filter((node) => node.outcome === outcome).map(entryOfNode);
}

/** Returns what changed: what is said of the file as a whole, then each node. */
export function changedEntries(report: ImportReport): Entry[] {
  const ofNodes = entriesOf(report, "changed");
  const { options, notes } = report;
  if (notes.length === 0 && Object.keys(options).length === 0) return ofNodes;
  return [{ pointer: "", name: "", kind: "", notes, targets: [] }, ...ofNodes];
}

/** Returns the parts that are not in the graph, each with the node of the source that it stood in. */
export function lostEntries(report: ImportReport): Entry[] {
  return report.lost.map(({ pointer, code, message, text }) => {
    const node = nodeAt(report, pointer);
    return {
      pointer,
      name: node ? nameOf(node) : "",
      kind: node?.source_kind ?? "",
      notes: [{ code, message, pointer }],
      text,
      targets: node?.target ?? [],
    };
  });
}

/** What is said of several places. */
export type SharedNote = { message: string; hint?: string | undefined; pointers: string[] };

/** Returns what is said of the edges, each sentence once with all its places. */
export function edgeNotes(report: ImportReport): SharedNote[] {
  const byMessage = new Map<string, SharedNote>();
  for (const { message, pointer, hint } of report.edges.flatMap((edge) => edge.notes)) {
    const known = byMessage.get(message);
    if (known) known.pointers.push(pointer);
    else byMessage.set(message, { message, hint, pointers: [pointer] });
  }
  return [...byMessage.values()];
}

/** Returns the nodes that run as they were, and of which something is said all the same. */
export function remarkedEntries(report: ImportReport): Entry[] {
  return entriesOf(report, "mapped").filter((entry) => entry.notes.length > 0);
}

/** Returns whether something differs that a person has to read before the graph is saved. */
export function hasChanged(report: ImportReport): boolean {
  const isEdgeChanged = report.edges.some((edge) => edge.outcome === "changed");
  return isEdgeChanged || report.lost.length > 0 || changedEntries(report).length > 0;
}

/** What stands in the way of a run on this machine alone, and in the way of no flow. */
const PROVIDER_CODES: ReadonlySet<string> = new Set([
  "unknown-provider",
  "unavailable-provider",
  "unknown-model",
]);
/** What stands in the way of a run until flows are there, and makes no draft either. */
const FLOW_CODES: ReadonlySet<string> = new Set(["unknown-flow", "not-approved"]);
const PLACEHOLDER = "placeholder";

/** Returns whether a finding makes a graph a draft, which nothing starts: it can run nowhere. */
export function makesDraft({ severity, code }: DiagnosticResponse): boolean {
  return severity === "error" && !PROVIDER_CODES.has(code) && !FLOW_CODES.has(code);
}

/** Returns the errors of the graph that the report does not name in its own words. */
export function otherErrors({ diagnostics }: ImportResponse): DiagnosticResponse[] {
  return blockingErrors(diagnostics).filter((found) => found.code !== PLACEHOLDER);
}

/** Returns what makes a draft of it: "3 placeholders"; undefined where nothing does. */
export function obstacle({ report, diagnostics }: ImportResponse): string | undefined {
  const errors = diagnostics.filter(makesDraft);
  if (errors.length === 0) return undefined;
  const placeholders = report.summary.placeholder;
  if (placeholders > 0) return formatAmount(placeholders, "placeholder");
  return formatAmount(errors.length, "error");
}

function blockingErrors(diagnostics: readonly DiagnosticResponse[]): DiagnosticResponse[] {
  return diagnostics.filter(
    (found) => found.severity === "error" && !PROVIDER_CODES.has(found.code),
  );
}

/** Returns how many placeholders of a graph show a program that can become a Python module: those of Dify
 * alone, and of these not the programs in JavaScript. */
export function pythonProgramsIn({ report, document }: ImportResponse): number {
  return report.kind === "dify" ? document.nodes.filter(isPythonProgram).length : 0;
}

function isPythonProgram({ type, data }: NodeDocument): boolean {
  const parameters = data?.parameters as { code_language?: unknown } | undefined;
  return type === PLACEHOLDER && !!data?.code && parameters?.code_language !== "javascript";
}

/** Returns what a node of the graph was, and what is said of that; also of what became nodes inside it. */
export function entriesAt(report: ImportReport, id: string): Entry[] {
  const lost = lostEntries(report);
  return report.nodes
    .map(entryOfNode)
    .filter(({ targets }) => targets.some((path) => outerNode(path) === id))
    .map((entry) => {
      const said = new Set(entry.notes.map((note) => note.message));
      const parts = lost
        .filter((part) => nodeAt(report, part.pointer)?.source === entry.pointer)
        .flatMap((part) => part.notes)
        .filter((note) => !said.has(note.message));
      return { ...entry, notes: [...entry.notes, ...parts] };
    })
    .filter((entry) => entry.targets.includes(id) || entry.notes.length > 0);
}

/** Returns the node of the document that a path leads through: `loop` of `loop/step`. */
export function outerNode(path: string): string {
  return path.split("/", 1)[0] ?? path;
}

/** Returns what nodes are called: of one in the graph of another the name of that and its path in it. */
export function namesOf(graph: GraphDocument, paths: readonly string[]): string[] {
  const names = new Map(graph.nodes.map((node) => [node.id, node.name || node.id]));
  return paths.map((path) => {
    const id = outerNode(path);
    return `${names.get(id) ?? id}${path.slice(id.length)}`;
  });
}

function entryOfNode(node: ImportedNode): Entry {
  return {
    pointer: node.source,
    name: nameOf(node),
    kind: node.source_kind,
    notes: node.notes,
    targets: node.target,
  };
}

function nameOf(node: ImportedNode): string {
  return node.source_name || node.source_kind || node.source;
}

/** Returns the node of the source that a place is in: the innermost one. */
function nodeAt(report: ImportReport, pointer: string): ImportedNode | undefined {
  return report.nodes
    .filter(({ source }) => pointer === source || pointer.startsWith(`${source}/`))
    .reduce<ImportedNode | undefined>(
      (best, node) => (!best || node.source.length > best.source.length ? node : best),
      undefined,
    );
}
