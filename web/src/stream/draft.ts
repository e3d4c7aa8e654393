import type { ErrorDocument, GraphDocument, NodeDocument } from "@/api/types";
import { indexOfGraph } from "@/stream/graphIndex";
import { toText } from "@/stream/json";
import {
  ENDED_NODE,
  type LogEntry,
  NO_TEXT,
  type NodeState,
  newNodeState,
  type RunError,
  type RunState,
  type Span,
  type SpanKind,
} from "@/stream/runState";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
export type NodeDraft = Mutable<NodeState>;

/** A state in the making: each collection and each node is copied once, when it first changes. */
export class Draft {
  readonly state: Mutable<RunState>;
  private readonly base: RunState;
  private readonly changed = new Map<string, NodeDraft>();
  private nodes: Map<string, NodeState> | null = null;
  private log: LogEntry[] | null = null;

  constructor(base: RunState) {
    this.base = base;
    this.state = { ...base };
  }

  /** Return a node, to be changed; it is made where no event has named it yet. */
  node(path: string): NodeDraft {
    let node = this.changed.get(path);
    if (node === undefined) {
      node = { ...(this.state.nodes.get(path) ?? this.newNode(path)) };
      this.put(node);
    }
    return node;
  }

  /** Return a node that starts; one that had ended starts again and keeps its usage. */
  begun(path: string): NodeDraft {
    const node = this.node(path);
    if (!ENDED_NODE.has(node.status)) return node;
    const { spans, usage, name, calls } = node;
    const fresh = { ...this.newNode(path), name, spans, usage, calls };
    this.put(fresh);
    return fresh;
  }

  /** Let these be all nodes, in this order. */
  replaceNodes(nodes: readonly NodeState[]): void {
    this.state.nodes = this.nodes = new Map(nodes.map((node) => [node.path, node]));
    this.changed.clear();
  }

  /** Return a map of the state, to be changed. */
  map<Key extends "runs" | "graphs" | "requests" | "closedRequests">(name: Key) {
    if (this.state[name] === this.base[name]) {
      this.state[name] = new Map(this.state[name] as Map<string, never>) as RunState[Key];
    }
    return this.state[name] as RunState[Key] extends ReadonlyMap<string, infer Value>
      ? Map<string, Value>
      : never;
  }

  addLogEntry(entry: LogEntry): void {
    if (this.log === null) this.state.log = this.log = [...this.state.log];
    this.log.push(entry);
  }

  /** Return the document of a node, undefined where its graph is not known. */
  documentOf(path: string): NodeDocument | undefined {
    const { prefix, id } = splitPath(path);
    const graph = graphAt(this.state, prefix);
    return graph && indexOfGraph(graph).nodes.get(id);
  }

  private put(node: NodeDraft): void {
    if (this.nodes === null) this.state.nodes = this.nodes = new Map(this.state.nodes);
    this.nodes.set(node.path, node);
    this.changed.set(node.path, node);
  }

  private newNode(path: string): NodeState {
    const fresh = newNodeState(path);
    const document = this.documentOf(path);
    return { ...fresh, name: document?.name || fresh.name, type: document?.type ?? null };
  }
}

/** Return the graph of the run with a path prefix, undefined where it is not known. */
export function graphAt(state: RunState, prefix: string): GraphDocument | undefined {
  if (prefix === "") return state.graph ?? undefined;
  const run = state.runs.get(prefix);
  return run && state.graphs.get(run.graph);
}

/** Return the prefix of the run that a node is part of, and its id there. */
export function splitPath(path: string): { prefix: string; id: string } {
  const prefix = path.slice(0, path.lastIndexOf("/") + 1);
  return { prefix, id: path.slice(prefix.length) };
}

/** Begin an attempt; the text of the attempt before is dropped. */
export function beginAttempt(node: NodeDraft, attempt: number | undefined): void {
  const number = attempt || Math.max(node.attempt, 1);
  if (number !== node.attempt) node.prompts = [];
  node.attempt = number;
  discardText(node);
  node.written = [];
  node.prompted = false;
}

/** Drop the text and the reasoning streamed so far. */
export function discardText(node: NodeDraft): void {
  node.text = NO_TEXT;
  node.reasoning = NO_TEXT;
}

/** End the open span of a node, and open another one. */
export function openSpan(node: NodeDraft, kind: SpanKind, at: string): void {
  const open: Span = { kind, attempt: Math.max(node.attempt, 1), from: at, to: null };
  node.spans = [...closed(node.spans, at), open];
}

/** End the open span of a node. */
export function closeSpan(node: NodeDraft, at: string): void {
  node.spans = closed(node.spans, at);
}

function closed(spans: readonly Span[], at: string): readonly Span[] {
  const last = spans.at(-1);
  return last === undefined || last.to !== null ? spans : spans.with(-1, { ...last, to: at });
}

/** Return an error with its parts as text. */
export function runError(error: ErrorDocument | null | undefined): RunError | null {
  if (!error) return null;
  const code = toText(error.code);
  const message = toText(error.message) || code || "unknown error";
  return { code, message, hint: toText(error.hint) || null, node: error.node ?? null };
}
