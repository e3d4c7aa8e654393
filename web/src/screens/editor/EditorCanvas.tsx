import {
  Background,
  type Connection,
  MiniMap,
  type NodeHandle,
  type OnConnectEnd,
} from "@xyflow/react";
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useStore } from "zustand";
import { createStore, type StoreApi } from "zustand/vanilla";
import type { EdgeDocument, GraphDocument, NodePortsResponse } from "@/api/types";
import { cardText } from "@/canvas/cardText";
import type { CanvasEdge, CanvasStep } from "@/canvas/flowElements";
import { type CardDetail, LaneCanvas } from "@/canvas/LaneCanvas";
import type { Point } from "@/canvas/layout";
import { plannedNodes } from "@/canvas/planLayout";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { showToast } from "@/ui/toasts";
import { useSameList } from "@/ui/useSameList";
import type { DroppedWire } from "./AddStep";
import { EditorNode, type EditorNodeProps } from "./EditorNode";
import styles from "./EditorScreen.module.css";
import { connect, moveNodes, positionOf, refusalOf } from "./graphEdits";
import { PortLegend } from "./PortLegend";
import {
  type DrawnPorts,
  drawnPorts,
  edgeHandle,
  findPort,
  NODE_WIDTH,
  nodeHandles,
  nodeHeight,
  type PortLookup,
  withWiredPorts,
} from "./ports";

const SIZES = { laneWidth: 268, cardWidth: NODE_WIDTH, gap: 28 };
/** What the toolbar takes above the headers of the lanes, in px. */
const TOOLS_HEIGHT = 52;
const MINI_MAP = { width: 148, height: 84 };

export type NodeMarks = Pick<EditorNodeProps, "change" | "problem" | "fixed">;

type EditorCanvasProps = {
  graph: GraphDocument;
  /** Changes the graph as it is then. */
  onChange: (edit: (graph: GraphDocument) => GraphDocument, kind?: string) => void;
  selection: ReadonlySet<string>;
  onSelect: (ids: Iterable<string>) => void;
  /** Selects a step and moves the focus to its form. */
  onOpen: (id: string) => void;
  portsOf: PortLookup;
  colourOf: (type: string) => string;
  /** The colour of a link. */
  linkColourOf: (edge: EdgeDocument) => string | undefined;
  marksOf: (id: string) => NodeMarks;
  /** A wire was dropped where nothing is. */
  onDrop: (dropped: DroppedWire) => void;
};

type NodeView = CardShape &
  NodeMarks &
  Pick<EditorNodeProps, "node" | "ports" | "text" | "wired" | "colourOf">;

/** The steps of a plan in lanes, to be moved, wired and removed. */
export const EditorCanvas = memo(function EditorCanvas(props: EditorCanvasProps) {
  const { graph, selection, onSelect, onOpen, onChange, linkColourOf } = props;
  const views = useNodeViews(props);
  // A key in a form changes the graph, but mostly neither steps nor edges as they are laid out.
  const placed = useSameList(toPlaced(graph, views), isSamePlace);
  const { edges: wired } = graph;
  const steps = useMemo(() => toSteps(placed, wired), [placed, wired]);
  const wires = useMemo(() => toEdges(wired, linkColourOf), [wired, linkColourOf]);
  const edges = useSameList(wires, isSameEdge);
  const tabStop = (graph.nodes.find(({ id }) => selection.has(id)) ?? graph.nodes[0])?.id;
  const select = useCallback((id: string) => onSelect([id]), [onSelect]);
  const cards = useCards({ views, selection, tabStop });
  const renderStep = useCallback(
    (id: string, detail: CardDetail) => (
      <Card id={id} isBox={detail === "box"} cards={cards} onSelect={select} onOpen={onOpen} />
    ),
    [cards, select, onOpen],
  );
  return (
    <LaneCanvas
      label="Steps of the plan"
      steps={steps}
      edges={edges}
      sizes={SIZES}
      renderStep={renderStep}
      useEdgeStatus={usePlanned}
      laneHeader={({ ids }) => <span>{ids.length === 1 ? "1 step" : `${ids.length} steps`}</span>}
      selection={selection}
      onSelect={onSelect}
      editing={{
        onMove: (places, kind) => onChange((now) => moveNodes(now, places), kind),
        ...connecting(props),
      }}
      toolsHeight={TOOLS_HEIGHT}
      zoomAt="bottom-left"
    >
      <Background gap={20} color="var(--grid-dot)" />
      <PortLegend views={views} colourOf={props.colourOf} />
      <MiniMap
        position="bottom-right"
        className={styles.miniMap}
        style={MINI_MAP}
        nodeColor="var(--line-control)"
        maskColor="transparent"
        pannable
        zoomable
        ariaLabel="Overview"
      />
    </LaneCanvas>
  );
});

type Cards = {
  views: ReadonlyMap<string, NodeView>;
  selection: ReadonlySet<string>;
  /** The step that Tab leads to. */
  tabStop: string | undefined;
};

/** Keeps what the cards show in a store of their own: each is drawn anew when that changes for itself. */
function useCards(state: Cards): StoreApi<Cards> {
  const [cards] = useState(() => createStore<Cards>(() => state));
  const { views, selection, tabStop } = state;
  useLayoutEffect(
    () => cards.setState({ views, selection, tabStop }),
    [cards, views, selection, tabStop],
  );
  return cards;
}

type CardProps = Pick<EditorNodeProps, "isBox" | "onSelect" | "onOpen"> & {
  id: string;
  cards: StoreApi<Cards>;
};

function Card({ id, cards, ...own }: CardProps) {
  const view = useStore(cards, ({ views }) => views.get(id));
  const isSelected = useStore(cards, ({ selection }) => selection.has(id));
  const isTabStop = useStore(cards, ({ tabStop }) => tabStop === id);
  if (!view) return null;
  const { node, ports, text, wired, colourOf, change, problem, fixed } = view;
  const shown = { node, ports, text, wired, colourOf, change, problem, fixed };
  return <EditorNode {...shown} {...{ isSelected, isTabStop, ...own }} />;
}

/** No run has touched an edge of a plan. */
function usePlanned(): EdgeStatus {
  return "plan";
}

/** What each card shows. A card that shows the same keeps its view, so that a key in the form of one step draws
 * one card anew. */
function useNodeViews({ graph, portsOf, colourOf, marksOf }: EditorCanvasProps) {
  const shapes = useRef(new Map<string, CardShape>());
  const known = useRef(new Map<string, NodeView>());
  return useMemo(() => {
    const wires = wiresOf(graph);
    const [kept, views] = [new Map<string, CardShape>(), new Map<string, NodeView>()];
    for (const node of graph.nodes) {
      const text = cardText(node);
      const shape = shapeOf(
        portsOf(node),
        wires.get(node.id),
        text !== "",
        shapes.current.get(node.id),
      );
      const view = { node, text, colourOf, ...shape, ...marksOf(node.id) };
      const before = known.current.get(node.id);
      kept.set(node.id, shape);
      views.set(node.id, before && isSameView(before, view) ? before : view);
    }
    shapes.current = kept;
    known.current = views;
    return views;
  }, [graph, portsOf, colourOf, marksOf]);
}

/** The ports of a card, where edges meet it, and its height; and what these were made of. */
type CardShape = {
  given: NodePortsResponse;
  wires: string;
  hasText: boolean;
  ports: DrawnPorts;
  wired: ReadonlySet<string>;
  handles: NodeHandle[];
  height: number;
};
type Wires = { inputs: Set<string>; outputs: Set<string> };

const NO_WIRES: Wires = { inputs: new Set(), outputs: new Set() };

function wiresOf({ edges }: GraphDocument): Map<string, Wires> {
  const wires = new Map<string, Wires>();
  const of = (id: string) => {
    const found = wires.get(id) ?? { inputs: new Set(), outputs: new Set() };
    wires.set(id, found);
    return found;
  };
  for (const edge of edges) {
    of(edge.source).outputs.add(edgeHandle(edge, "source"));
    of(edge.target).inputs.add(edgeHandle(edge, "target"));
  }
  return wires;
}

function shapeOf(
  given: NodePortsResponse,
  { inputs, outputs }: Wires = NO_WIRES,
  hasText: boolean,
  before: CardShape | undefined,
): CardShape {
  const wires = [...inputs, "", ...outputs].join(" ");
  const isSame = before?.given === given && before.wires === wires && before.hasText === hasText;
  if (isSame) return before;
  const wired = new Set([...inputs, ...outputs]);
  const ports = drawnPorts(withWiredPorts(given, inputs, outputs), wired);
  const handles = nodeHandles(ports, hasText);
  return { given, wires, hasText, ports, wired, handles, height: nodeHeight(ports, hasText) };
}

function isSameView(a: NodeView, b: NodeView): boolean {
  return (
    a.node === b.node &&
    a.handles === b.handles &&
    a.colourOf === b.colourOf &&
    a.change === b.change &&
    a.problem === b.problem &&
    a.fixed === b.fixed
  );
}

/** Where a person has put a step, its height, and where edges meet it. */
type PlacedStep = Pick<CanvasStep, "id" | "height" | "handles" | "place">;

function toPlaced(graph: GraphDocument, views: ReadonlyMap<string, NodeView>): PlacedStep[] {
  return graph.nodes.map((node) => {
    const { height = 0, handles } = views.get(node.id) ?? {};
    const place = positionOf(node) ?? undefined;
    return { id: node.id, height, place, ...(handles && { handles }) };
  });
}

function isSamePlace(a: PlacedStep, b: PlacedStep): boolean {
  return (
    a.id === b.id &&
    a.height === b.height &&
    a.handles === b.handles &&
    a.place?.x === b.place?.x &&
    a.place?.y === b.place?.y
  );
}

/** By waves, but for the steps that a person has put elsewhere. */
function toSteps(placed: readonly PlacedStep[], edges: readonly EdgeDocument[]): CanvasStep[] {
  const nodes = placed.map(({ id }) => ({ id, type: "" }));
  const waves = plannedNodes({ nodes, edges: [...edges] }, () => 0);
  return placed.map((step, index) => ({ ...step, wave: waves[index]?.wave ?? null }));
}

function toEdges(
  edges: readonly EdgeDocument[],
  colourOf: EditorCanvasProps["linkColourOf"],
): CanvasEdge[] {
  return edges.map((edge, index) => ({
    id: edge.id ?? `edge ${index}`,
    source: edge.source,
    target: edge.target,
    sourceHandle: edgeHandle(edge, "source"),
    targetHandle: edgeHandle(edge, "target"),
    isLink: edge.data.channel === "link",
    colour: colourOf(edge),
  }));
}

function isSameEdge(a: CanvasEdge, b: CanvasEdge): boolean {
  return (Object.keys(a) as (keyof CanvasEdge)[]).every((key) => a[key] === b[key]);
}

/** Wires are drawn from port to port; one that cannot be says why. */
function connecting({ graph, onChange, onDrop, portsOf }: EditorCanvasProps) {
  const node = (id: string) => graph.nodes.find((each) => each.id === id);
  const ends = (
    connection: Pick<Connection, "source" | "target" | "sourceHandle" | "targetHandle">,
  ) => {
    const source = findPort(node(connection.source), "source", connection.sourceHandle, portsOf);
    const target = findPort(node(connection.target), "target", connection.targetHandle, portsOf);
    return source && target ? { source, target } : null;
  };
  const onConnect = (connection: Connection) => {
    const found = ends(connection);
    if (!found) return;
    const refusal = refusalOf(found.source, found.target);
    if (refusal) showToast({ kind: "error", text: refusal });
    else onChange((now) => connect(now, found.source, found.target));
  };
  const drop = ({ nodeId, type: side, id }: FromHandle, at: Point) => {
    const end = findPort(node(nodeId), side, id, portsOf);
    if (end) onDrop({ start: { ...end, side }, at });
  };
  const onConnectEnd: OnConnectEnd = (event, { fromHandle, toHandle, toNode }) => {
    if (!fromHandle) return;
    if (!toHandle && !toNode) drop(fromHandle, pointOf(event));
    else if (fromHandle.type === toHandle?.type) {
      const kind = fromHandle.type === "source" ? "outputs" : "inputs";
      showToast({
        kind: "error",
        text: `Two ${kind} cannot be connected: draw from an output to an input.`,
      });
    }
  };
  return { onConnect, onConnectEnd };
}

/** The handle that a wire was drawn from. */
type FromHandle = NonNullable<Parameters<OnConnectEnd>[1]["fromHandle"]>;

/** Returns where a pointer was let go, in the window. */
function pointOf(event: MouseEvent | TouchEvent): Point {
  const pointer = "changedTouches" in event ? event.changedTouches[0] : event;
  return { x: pointer?.clientX ?? 0, y: pointer?.clientY ?? 0 };
}
