import { type NodeHandle, Position } from "@xyflow/react";
import type {
  CheckResponse,
  EdgeDocument,
  NodeDocument,
  NodePortsResponse,
  NodeTypesResponse,
  PortResponse,
} from "@/api/types";
import type { PortEnd } from "./graphEdits";

/** The ports of each node of a graph. */
export type PortLookup = (node: NodeDocument) => NodePortsResponse;

const NO_PORTS: NodePortsResponse = { inputs: [], outputs: [] };

/** Returns the ports of nodes: those of the check where their data decide, else of their type. */
export function portLookup(
  types: NodeTypesResponse | undefined,
  check: CheckResponse | undefined,
): PortLookup {
  const byType = new Map(types?.node_types.map((type) => [type.node_type, type]));
  return (node) => check?.ports[node.id] ?? byType.get(node.type) ?? NO_PORTS;
}

/** A handle that an edge names, and its node does not have. */
const UNKNOWN_PORT = {
  type: "any",
  multiple: true,
  required: false,
  color: "",
  shape: "circle",
};

/** Returns the ports of a node with those that only its edges name: a wrong wire is drawn as well. */
export function withWiredPorts(
  { inputs, outputs }: NodePortsResponse,
  taken: ReadonlySet<string>,
  given: ReadonlySet<string>,
): NodePortsResponse {
  return {
    inputs: [...inputs, ...unknownPorts(inputs, taken, "left")],
    outputs: [...outputs, ...unknownPorts(outputs, given, "right")],
  };
}

function unknownPorts(
  ports: readonly PortResponse[],
  wired: ReadonlySet<string>,
  side: string,
): PortResponse[] {
  const known = new Set(ports.map(handleId));
  return [...wired]
    .filter((handle) => !known.has(handle))
    .map((handle) => {
      const channel = handle.startsWith("link:") ? "link" : "flow";
      const name = handle.slice(channel.length + 1);
      return { ...UNKNOWN_PORT, name, label: name, channel, side };
    });
}

/** Returns the name of a handle in xyflow: flow and link ports may share a name. */
export function handleId(port: PortResponse): string {
  return `${port.channel}:${port.name}`;
}

/** Returns the handle that an edge ends at, on its own side. */
export function edgeHandle(edge: EdgeDocument, side: "source" | "target"): string {
  const channel = edge.data.channel === "link" ? "link" : "flow";
  const name = side === "source" ? (edge.sourceHandle ?? "output") : (edge.targetHandle ?? "input");
  return `${channel}:${name}`;
}

export function findPort(
  node: NodeDocument | undefined,
  side: "source" | "target",
  handle: string | null | undefined,
  portsOf: PortLookup,
): PortEnd | null {
  if (!node) return null;
  const ports = side === "source" ? portsOf(node).outputs : portsOf(node).inputs;
  const port = ports.find((each) => handleId(each) === handle);
  return port ? { node: node.id, port } : null;
}

/** Types whose sockets are settings of the form: they are drawn only when something is wired to them. */
const SETTING_TYPES = new Set(["text", "number", "integer", "boolean", "json", "any"]);

export type DrawnPorts = {
  /** Left. */
  inputs: PortResponse[];
  /** Right. */
  outputs: PortResponse[];
  /** On the top edge: what others link. */
  tops: PortResponse[];
  /** Below: what is linked, and settings that are wired. */
  sides: PortResponse[];
};

/** Returns the ports that a node shows, given the handles that edges end at.
 *
 * Patterns such as `case-{i}` are no ports yet; a link output beside a flow output of its name is
 * shown where it is used. */
export function drawnPorts(
  { inputs, outputs }: NodePortsResponse,
  wired: ReadonlySet<string>,
): DrawnPorts {
  const isWired = (port: PortResponse) => wired.has(handleId(port));
  const isNamed = (port: PortResponse) => !port.name.includes("{");
  const isShown = (port: PortResponse, ports: readonly PortResponse[]) =>
    isNamed(port) && (isWired(port) || !hasFlowTwin(port, ports));
  const given = outputs.filter((port) => isShown(port, outputs));
  return {
    inputs: inputs.filter((port) => port.side === "left" && isShown(port, inputs)),
    outputs: given.filter((port) => port.side !== "top"),
    tops: given.filter((port) => port.side === "top"),
    sides: inputs.filter(
      (port) => port.side !== "left" && (isWired(port) || !SETTING_TYPES.has(port.type)),
    ),
  };
}

function hasFlowTwin(port: PortResponse, ports: readonly PortResponse[]): boolean {
  return (
    port.channel === "link" &&
    ports.some((each) => each.channel === "flow" && each.name === port.name)
  );
}

// The sizes of a node in px; the CSS of `EditorNode` has the same.
export const NODE_WIDTH = 208;
const BORDER = 1;
const HEAD = 57;
/** Two lines of what the step is to do. */
const TEXT = 38;
const ROW = 20;
const ROWS_PADDING = 9;
const SIDES = 30;
/** At the left and right of the ports below. */
const SIDES_PADDING = 8;
const SOCKET = 11;
/** From the lower edge to the middle of a socket there. */
const SOCKET_BELOW = 5;

/** Returns the height of a node; `hasText`: it says what it is to do. */
export function nodeHeight(ports: DrawnPorts, hasText: boolean): number {
  const below = ports.sides.length > 0 ? SIDES : 0;
  return rowsTop(hasText) + rowsHeight(ports) + below + BORDER;
}

function rowsTop(hasText: boolean): number {
  return BORDER + HEAD + (hasText ? TEXT : 0);
}

function rowsHeight({ inputs, outputs }: DrawnPorts): number {
  const rows = Math.max(inputs.length, outputs.length);
  return rows > 0 ? rows * ROW + ROWS_PADDING : 0;
}

/** Returns where the sockets of a node are, so that edges lead to nodes that are not drawn as well. */
export function nodeHandles(ports: DrawnPorts, hasText: boolean): NodeHandle[] {
  const { inputs, outputs, tops, sides } = ports;
  const rowY = (row: number) => rowsTop(hasText) + Math.ceil(ROWS_PADDING / 2) + ROW * (row + 0.5);
  const room = NODE_WIDTH - 2 * (BORDER + SIDES_PADDING);
  const sideX = (index: number) =>
    BORDER + SIDES_PADDING + (room * (index + 0.5)) / Math.max(1, sides.length);
  const below = nodeHeight(ports, hasText) + SOCKET_BELOW;
  const [left, right] = [BORDER, NODE_WIDTH - BORDER];
  return [
    ...inputs.map((port, row) => socket(port, "target", Position.Left, left, rowY(row))),
    ...outputs.map((port, row) => socket(port, "source", Position.Right, right, rowY(row))),
    ...tops.map((port) => socket(port, "source", Position.Top, NODE_WIDTH / 2, 0)),
    ...sides.map((port, index) => socket(port, "target", Position.Bottom, sideX(index), below)),
  ];
}

function socket(
  port: PortResponse,
  type: NodeHandle["type"],
  position: Position,
  x: number,
  y: number,
): NodeHandle {
  const place = { x: x - SOCKET / 2, y: y - SOCKET / 2, width: SOCKET, height: SOCKET };
  return { id: handleId(port), type, position, ...place };
}
