import type { GraphDocument, NodePortsResponse, NodeTypeResponse, PortResponse } from "@/api/types";
import { addNode, connect, freeNodeId, refusalOf } from "./graphEdits";
import type { PortLookup } from "./ports";

/** What a new step is connected to: a port that a wire was drawn from, or whichever port of a step fits. */
export type WireStart = { node: string; port?: PortResponse; side?: "source" | "target" };

/** Returns the graph with a new step of a type, connected to where a wire starts if that can be, and its id. */
export function withNewStep(
  graph: GraphDocument,
  type: NodeTypeResponse,
  start: WireStart | null,
  portsOf: PortLookup,
): { graph: GraphDocument; id: string } {
  const id = freeNodeId(graph, type.node_type);
  const policy = type.policy && { policy: type.policy };
  const added = addNode(graph, { id, type: type.node_type, name: "", data: {}, ...policy });
  const known = graph.nodes.find((node) => node.id === start?.node);
  const wire = start && known && wireFrom(start, portsOf(known), type);
  if (!wire) return { graph: added, id };
  const [from, to] = wire.isFed ? [start.node, id] : [id, start.node];
  const ends = [
    { node: from, port: wire.source },
    { node: to, port: wire.target },
  ] as const;
  return { graph: connect(added, ...ends), id };
}

/** Returns whether a step of a type can be connected to the port that a wire was drawn from. */
export function takesWire(type: NodeTypeResponse, start: WireStart): boolean {
  return start.port === undefined || wireFrom(start, NO_PORTS, type) !== null;
}

const NO_PORTS: NodePortsResponse = { inputs: [], outputs: [] };

/** `isFed`: the new step is at the target of the wire. */
type Wire = { source: PortResponse; target: PortResponse; isFed: boolean };

/** A step that others link, such as a tool, is linked into the step; any other one comes after it. */
function wireFrom(start: WireStart, ports: NodePortsResponse, type: NodeTypeResponse): Wire | null {
  const { port, side } = start;
  const isLinked =
    type.outputs.every(({ channel }) => channel === "link") && type.outputs.length > 0;
  const isFed = port ? side === "source" : !isLinked;
  const outputs = ports.outputs.filter(
    ({ channel, name }) => channel === "flow" && name !== "error",
  );
  const sources = isFed ? (port ? [port] : outputs) : type.outputs;
  const targets = isFed ? type.inputs.filter(isInput) : port ? [port] : ports.inputs;
  for (const source of sources.filter(isThere)) {
    const target = targets.find((each) => isThere(each) && fits(source, each));
    if (target) return { source, target, isFed };
  }
  return null;
}

/** Settings are written in the form. */
function isInput({ channel, side }: PortResponse): boolean {
  return channel === "link" || side === "left";
}

/** Ports such as `case-{i}` are there once the data name them. */
function isThere({ name }: PortResponse): boolean {
  return !name.includes("{");
}

/** Links join sockets of one type; what flows is converted, or the check says that it cannot be. */
function fits(source: PortResponse, target: PortResponse): boolean {
  if (refusalOf({ node: "source", port: source }, { node: "target", port: target })) return false;
  return source.channel === "flow" || source.type === target.type;
}
