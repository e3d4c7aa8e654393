import { type Edge, type Node, type NodeHandle, Position } from "@xyflow/react";
import { CARD_HEIGHT, type Layout, type LayoutNode, type LayoutSizes, type Point } from "./layout";

export type CanvasStep = LayoutNode & {
  /** Where edges meet the card; without them, in the middle of its sides. */
  handles?: NodeHandle[];
};
export type CanvasEdge = {
  id: string;
  source: string;
  target: string;
  isLink: boolean;
  /** The handles of its ends, where cards name theirs. */
  sourceHandle?: string;
  targetHandle?: string;
  /** Of a link, that of its socket. */
  colour?: string | undefined;
};

type NodeParts = {
  edges: readonly CanvasEdge[];
  layout: Layout;
  sizes: LayoutSizes;
  dragged: ReadonlyMap<string, Point>;
  marked: ReadonlySet<string>;
};

export type StepNodeType = Node<{ handles: NodeHandle[] }, "step">;

/** Returns the nodes of xyflow. One that is as it was `before` is the same object, so that xyflow leaves it alone. */
export function toNodes(
  steps: readonly CanvasStep[],
  { edges, layout, sizes, dragged, marked }: NodeParts,
  before: ReadonlyMap<string, StepNodeType>,
): StepNodeType[] {
  const linked = new Set(
    edges.flatMap(({ isLink, source, target }) => (isLink ? [source, target] : [])),
  );
  return steps.map(({ id, height, ...own }) => {
    const handles = own.handles ?? handlesOfSides(sizes.cardWidth, height, linked.has(id));
    const node: StepNodeType = {
      id,
      type: "step",
      position: dragged.get(id) ?? layout.positions.get(id) ?? { x: 0, y: 0 },
      width: sizes.cardWidth,
      height,
      // Cards out of sight are never drawn, so never measured; the view is fitted to all, and edges
      // lead to them.
      measured: { width: sizes.cardWidth, height },
      handles,
      // xyflow lets clicks through elements that it can neither select nor drag.
      style: { pointerEvents: "all" },
      selected: marked.has(id),
      data: { handles },
    };
    const old = before.get(id);
    return old && isSameNode(old, node) ? old : node;
  });
}

function isSameNode(a: StepNodeType, b: StepNodeType): boolean {
  return (
    a.position.x === b.position.x &&
    a.position.y === b.position.y &&
    a.width === b.width &&
    a.height === b.height &&
    a.selected === b.selected &&
    a.data.handles.length === b.data.handles.length &&
    a.data.handles.every((handle, index) => isSameHandle(handle, b.data.handles[index]))
  );
}

function isSameHandle(a: NodeHandle, b: NodeHandle | undefined): boolean {
  return a === b || (a.id === b?.id && a.type === b?.type && a.x === b.x && a.y === b.y);
}

/** Edges meet a card at the middle of its three lines, also where more is shown below; links at its
 * top and bottom. */
function handlesOfSides(width: number, height: number, isLinked: boolean): NodeHandle[] {
  const size = { width: 0, height: 0 };
  const [middle, y] = [width / 2, CARD_HEIGHT / 2];
  const sides: NodeHandle[] = [
    { id: "flow", type: "target", position: Position.Left, x: 0, y, ...size },
    { id: "flow", type: "source", position: Position.Right, x: width, y, ...size },
  ];
  if (!isLinked) return sides;
  return [
    ...sides,
    { id: "link", type: "source", position: Position.Top, x: middle, y: 0, ...size },
    { id: "link", type: "target", position: Position.Bottom, x: middle, y: height, ...size },
  ];
}

export function toLines(edges: readonly CanvasEdge[], marked: ReadonlySet<string>): Edge[] {
  return edges.map(({ id, source, target, isLink, colour, sourceHandle, targetHandle }) => ({
    id,
    source,
    target,
    type: "wave",
    sourceHandle: sourceHandle ?? (isLink ? "link" : "flow"),
    targetHandle: targetHandle ?? (isLink ? "link" : "flow"),
    selected: marked.has(id),
    // The cards say what they depend on; by default its label has ids.
    ariaLabel: "",
    data: { isLink, colour },
  }));
}
