import type {
  EdgeDocument,
  GraphDocument,
  NodeDocument,
  NodeTypeResponse,
  PortResponse,
} from "@/api/types";
import { numberOf } from "@/json";

export type Position = { x: number; y: number };

/** One end of a wire. */
export type PortEnd = { node: string; port: PortResponse };

/** Returns an id that no node has: "agent", then "agent_2". */
export function freeNodeId(graph: GraphDocument, wanted: string): string {
  return freeId(new Set(graph.nodes.map((node) => node.id)), wanted);
}

/** Returns an id that is not taken: the wanted one, else with a number. */
export function freeId(taken: ReadonlySet<string>, wanted: string): string {
  const plain = wanted.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 56) || "step";
  if (!taken.has(plain)) return plain;
  const base = plain.replace(/_\d+$/, "");
  let number = 2;
  while (taken.has(`${base}_${number}`)) number += 1;
  return `${base}_${number}`;
}

export function addNode(graph: GraphDocument, node: NodeDocument): GraphDocument {
  return { ...graph, nodes: [...graph.nodes, node] };
}

/** What a plan or a flow begins with: it is never empty. */
export const FIRST_GRAPH: GraphDocument = {
  nodes: [
    { id: "start", type: "start", name: "Start" },
    { id: "agent", type: "agent", name: "Agent", data: { userPrompt: "{{ input }}" } },
  ],
  edges: [
    {
      id: "e1",
      source: "start",
      sourceHandle: "output",
      target: "agent",
      targetHandle: "input",
      data: { channel: "flow" },
    },
  ],
};

/** What a flow for chats begins with: the agent replies to the conversation. */
export const FIRST_CHAT: GraphDocument = {
  nodes: [
    { id: "start", type: "chat_start", name: "Chat" },
    { id: "agent", type: "agent", name: "Agent" },
  ],
  edges: [
    {
      id: "e1",
      source: "start",
      sourceHandle: "messages",
      target: "agent",
      targetHandle: "messages",
      data: { channel: "flow" },
    },
  ],
};

/** Returns the graph with some fields of a node changed. */
export function updateNode(
  graph: GraphDocument,
  id: string,
  change: Partial<NodeDocument>,
): GraphDocument {
  return {
    ...graph,
    nodes: graph.nodes.map((node) => (node.id === id ? { ...node, ...change } : node)),
  };
}

/** The type that keeps the place of a step that has no counterpart here. */
export const PLACEHOLDER = "placeholder";

/** What decides whether an edge fits a type. */
export type TypePorts = Pick<NodeTypeResponse, "node_type" | "inputs" | "outputs">;

/** Returns the graph with a node of another type in place of one: its id, name and place stay, and the edges
 * that fit the ports of the type. */
export function replaceType(graph: GraphDocument, id: string, type: TypePorts): GraphDocument {
  const nodes = graph.nodes.map((node) => {
    if (node.id !== id) return node;
    const { data: _, ...kept } = node;
    return { ...kept, type: type.node_type };
  });
  const edges = graph.edges.filter(
    (edge) =>
      (edge.source !== id || isGiven(type, edge)) &&
      (edge.target !== id || hasPort(type.inputs, edge.targetHandle ?? "input", edge)),
  );
  return { ...graph, nodes, edges };
}

/** Whether an edge leaves an output of a type; every step that runs may give its error. */
function isGiven(type: TypePorts, edge: EdgeDocument): boolean {
  const handle = edge.sourceHandle ?? "output";
  return handle === "error" || hasPort(type.outputs, handle, edge);
}

function hasPort(ports: readonly PortResponse[], handle: string, edge: EdgeDocument): boolean {
  return ports.some(
    (port) => port.channel === (edge.data.channel ?? "flow") && namesHandle(port.name, handle),
  );
}

/** Whether a port's name, perhaps a pattern such as `case-{i}`, is that of a handle. */
function namesHandle(name: string, handle: string): boolean {
  const parts = name.split(/\{(\w+)\}/);
  const pattern = parts.map((part, at) => {
    if (at % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return part === "i" ? "\\d+" : ".+";
  });
  return new RegExp(`^${pattern.join("")}$`, "s").test(handle);
}

/** Returns the graph without some nodes and their edges. */
export function removeNodes(graph: GraphDocument, ids: ReadonlySet<string>): GraphDocument {
  return {
    ...graph,
    nodes: graph.nodes.filter((node) => !ids.has(node.id)),
    edges: graph.edges.filter((edge) => !ids.has(edge.source) && !ids.has(edge.target)),
  };
}

export function removeEdges(graph: GraphDocument, ids: ReadonlySet<string>): GraphDocument {
  return { ...graph, edges: graph.edges.filter((edge) => !ids.has(edge.id ?? "")) };
}

/** Returns the graph with nodes at other places; nothing but `ui` changes. */
export function moveNodes(
  graph: GraphDocument,
  positions: ReadonlyMap<string, Position>,
): GraphDocument {
  return {
    ...graph,
    nodes: graph.nodes.map((node) => {
      const position = positions.get(node.id);
      return position ? { ...node, ui: { ...node.ui, position } } : node;
    }),
  };
}

/** Returns where an editor has put a node, null where nobody has moved it. */
export function positionOf(node: NodeDocument): Position | null {
  const position = node.ui?.position as Partial<Position> | undefined;
  const [x, y] = [numberOf(position?.x), numberOf(position?.y)];
  return x === null || y === null ? null : { x, y };
}

/** Why two ports cannot be connected, or null. The same rule as in the check of edges: both ends
 * have one channel. Types that do not fit are reported by the check, with the way out. */
export function refusalOf(source: PortEnd, target: PortEnd): string | null {
  if (source.node === target.node) return "A step cannot depend on itself.";
  if (source.port.channel !== target.port.channel) {
    return `${nameOf(source.port)} is a ${source.port.channel} port, ${nameOf(target.port)} a ${target.port.channel} port.`;
  }
  return null;
}

function nameOf(port: PortResponse): string {
  return port.label || port.name;
}

/** Returns the graph with two ports connected; channel and types are written from the ports. */
export function connect(graph: GraphDocument, source: PortEnd, target: PortEnd): GraphDocument {
  if (refusalOf(source, target) !== null) return graph;
  const isThere = graph.edges.some(
    (edge) =>
      edge.source === source.node &&
      edge.target === target.node &&
      (edge.sourceHandle ?? "output") === source.port.name &&
      (edge.targetHandle ?? "input") === target.port.name,
  );
  if (isThere) return graph;
  const taken = new Set(graph.edges.map((edge) => edge.id ?? ""));
  const edge: EdgeDocument = {
    id: freeId(taken, `${source.node}-${target.node}`),
    source: source.node,
    sourceHandle: source.port.name,
    target: target.node,
    targetHandle: target.port.name,
    data: {
      channel: source.port.channel,
      sourceType: source.port.type,
      targetType: target.port.type,
    },
  };
  return { ...graph, edges: [...graph.edges, edge] };
}

/** How far a copy stands from what it was copied from, in px. */
const COPY_OFFSET = 32;

/** Returns the graph with copies of nodes and of the edges between them, and the ids of the copies. */
export function paste(
  graph: GraphDocument,
  copied: GraphDocument,
): { graph: GraphDocument; ids: string[] } {
  const newIds = new Map<string, string>();
  const taken = new Set(graph.nodes.map((node) => node.id));
  const nodes = copied.nodes.map((node) => {
    const id = freeId(taken, node.id);
    taken.add(id);
    newIds.set(node.id, id);
    const position = positionOf(node);
    const moved = position && { x: position.x + COPY_OFFSET, y: position.y + COPY_OFFSET };
    return { ...node, id, ...(moved && { ui: { ...node.ui, position: moved } }) };
  });
  const edgeIds = new Set(graph.edges.map((edge) => edge.id ?? ""));
  const edges = copied.edges.flatMap((edge) => {
    const [source, target] = [newIds.get(edge.source), newIds.get(edge.target)];
    if (!source || !target) return [];
    const id = freeId(edgeIds, `${source}-${target}`);
    edgeIds.add(id);
    return [{ ...edge, id, source, target }];
  });
  return {
    graph: { ...graph, nodes: [...graph.nodes, ...nodes], edges: [...graph.edges, ...edges] },
    ids: [...newIds.values()],
  };
}

/** Returns a part of a graph: some nodes, and the edges between them. */
export function partOf(graph: GraphDocument, ids: ReadonlySet<string>): GraphDocument {
  return {
    nodes: graph.nodes.filter((node) => ids.has(node.id)),
    edges: graph.edges.filter((edge) => ids.has(edge.source) && ids.has(edge.target)),
  };
}
