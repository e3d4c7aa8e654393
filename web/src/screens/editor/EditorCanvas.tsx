import {
  Background,
  type Connection,
  ConnectionMode,
  type Edge,
  type EdgeProps,
  getBezierPath,
  MiniMap,
  type Node,
  type NodeChange,
  type NodeProps,
  type OnConnectEnd,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { createContext, useContext, useMemo, useRef, useState } from "react";
import type { EdgeDocument, GraphDocument } from "@/api/types";
import { stepAfterKey } from "@/canvas/keyboard";
import { LaneOverlay } from "@/canvas/LaneOverlay";
import { aroundPath, isInView } from "@/canvas/layout";
import { WaveEdge } from "@/canvas/WaveEdge";
import { ZoomTools } from "@/canvas/ZoomTools";
import { showToast } from "@/ui/Toast";
import styles from "./EditorCanvas.module.css";
import { EditorNode, type EditorNodeProps } from "./EditorNode";
import { EDITOR_SIZES, layoutEditor } from "./editorLayout";
import { connect, moveNodes, type Position, refusalOf } from "./graphEdits";
import { PortLegend } from "./PortLegend";
import {
  drawnPorts,
  edgeHandle,
  findPort,
  nodeHeight,
  type PortLookup,
  withWiredPorts,
} from "./ports";
import { FIT, useView } from "./useView";

/** What the tools and the headers of the lanes take of the view, in px. */
const HEADER = 84;
const MINI_MAP = { width: 148, height: 84 };

export type NodeMarks = Pick<EditorNodeProps, "change" | "problem">;

type EditorCanvasProps = {
  graph: GraphDocument;
  onChange: (graph: GraphDocument, kind?: string) => void;
  selection: ReadonlySet<string>;
  onSelect: (ids: Iterable<string>) => void;
  /** Selects a step and moves the focus to its form. */
  onOpen: (id: string) => void;
  portsOf: PortLookup;
  colourOf: (type: string) => string;
  /** The colour of a link. */
  linkColourOf: (edge: EdgeDocument) => string | undefined;
  marksOf: (id: string) => NodeMarks;
};

type NodeView = Omit<EditorNodeProps, "isSelected" | "isTabStop" | "onSelect" | "onOpen">;
type CanvasView = {
  nodes: ReadonlyMap<string, NodeView>;
  selection: ReadonlySet<string>;
  tabStop: string | undefined;
  onSelect: (ids: Iterable<string>) => void;
  onOpen: (id: string) => void;
};

const View = createContext<CanvasView | null>(null);
const NODE_TYPES = { step: StepNode };
const EDGE_TYPES = { wave: PlanEdge };

/** The steps of a plan in lanes, to be moved, wired and removed. */
export function EditorCanvas(props: EditorCanvasProps) {
  return (
    <ReactFlowProvider>
      <Canvas {...props} />
    </ReactFlowProvider>
  );
}

function Canvas(props: EditorCanvasProps) {
  const { graph, selection, onSelect, onOpen } = props;
  const views = useNodeViews(props);
  const layout = useMemo(() => layoutEditor(graph, (id) => heightOf(views, id)), [graph, views]);
  const [dragged, setDragged] = useState<ReadonlyMap<string, Position>>(new Map());
  const nodes = useMemo(
    () => toNodes(graph, { layout, views, dragged, selection }),
    [graph, layout, views, dragged, selection],
  );
  const edges = useMemo(
    () => toEdges(graph, selection, props.linkColourOf),
    [graph, selection, props.linkColourOf],
  );
  const view = useMemo(
    () => ({ nodes: views, selection, tabStop: tabStopOf(graph, selection), onSelect, onOpen }),
    [views, selection, graph, onSelect, onOpen],
  );
  const area = useRef<HTMLDivElement>(null);
  const { onConnect, onConnectEnd } = useConnecting(props);
  const onKeyDown = useArrowKeys(props, layout, area);
  const onMoveStart = useView(selection, layout);
  const onNodesChange = (changes: NodeChange[]) => {
    const moves = changes.filter((change) => change.type === "position");
    const positions = new Map(dragged);
    for (const { id, position } of moves) if (position) positions.set(id, position);
    const isDone = moves.length > 0 && moves.every((move) => !move.dragging);
    if (isDone) props.onChange(moveNodes(graph, positions), "move");
    if (moves.length > 0) setDragged(isDone ? new Map() : positions);
    applySelection(changes, selection, onSelect);
  };
  return (
    <View.Provider value={view}>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would be announced as a form */}
      <div
        className={styles.canvas}
        role="group"
        aria-label="Steps of the plan"
        ref={area}
        onKeyDown={onKeyDown}
      >
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={onNodesChange}
          onEdgesChange={(changes) => applySelection(changes, selection, onSelect)}
          onConnect={onConnect}
          onConnectEnd={onConnectEnd}
          connectionMode={ConnectionMode.Strict}
          connectionRadius={28}
          nodesFocusable={false}
          edgesFocusable={false}
          disableKeyboardA11y
          deleteKeyCode={null}
          selectionMode={SelectionMode.Partial}
          onlyRenderVisibleElements
          panOnScroll
          minZoom={0.1}
          maxZoom={1.5}
          fitView
          fitViewOptions={FIT}
          onMoveStart={onMoveStart}
          attributionPosition="bottom-center"
        >
          <Background gap={20} color="var(--grid-dot)" />
          <LaneOverlay
            lanes={layout.lanes}
            laneWidth={EDITOR_SIZES.laneWidth}
            header={(lane) => (
              <span>{lane.ids.length === 1 ? "1 step" : `${lane.ids.length} steps`}</span>
            )}
          />
          <ZoomTools fit={FIT} position="bottom-left" />
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
        </ReactFlow>
      </div>
    </View.Provider>
  );
}

function tabStopOf(graph: GraphDocument, selection: ReadonlySet<string>): string | undefined {
  return (graph.nodes.find((node) => selection.has(node.id)) ?? graph.nodes[0])?.id;
}

function heightOf(views: ReadonlyMap<string, NodeView>, id: string): number {
  const ports = views.get(id)?.ports;
  return ports ? nodeHeight(ports) : 82;
}

function useNodeViews({ graph, portsOf, colourOf, marksOf }: EditorCanvasProps) {
  return useMemo(() => {
    const taken = new Map<string, Set<string>>();
    const given = new Map<string, Set<string>>();
    for (const edge of graph.edges) {
      handlesOf(given, edge.source).add(edgeHandle(edge, "source"));
      handlesOf(taken, edge.target).add(edgeHandle(edge, "target"));
    }
    return new Map(
      graph.nodes.map((node): [string, NodeView] => {
        const [inputs, outputs] = [handlesOf(taken, node.id), handlesOf(given, node.id)];
        const handles = new Set([...inputs, ...outputs]);
        const ports = drawnPorts(withWiredPorts(portsOf(node), inputs, outputs), handles);
        return [node.id, { node, ports, wired: handles, colourOf, ...marksOf(node.id) }];
      }),
    );
  }, [graph, portsOf, colourOf, marksOf]);
}

function handlesOf(wired: Map<string, Set<string>>, id: string): Set<string> {
  const handles = wired.get(id) ?? new Set<string>();
  wired.set(id, handles);
  return handles;
}

type NodeParts = {
  layout: ReturnType<typeof layoutEditor>;
  views: ReadonlyMap<string, NodeView>;
  dragged: ReadonlyMap<string, Position>;
  selection: ReadonlySet<string>;
};

function toNodes(graph: GraphDocument, { layout, views, dragged, selection }: NodeParts): Node[] {
  return graph.nodes.map(({ id }) => ({
    id,
    type: "step",
    position: dragged.get(id) ?? layout.positions.get(id) ?? { x: 0, y: 0 },
    width: EDITOR_SIZES.cardWidth,
    height: heightOf(views, id),
    selected: selection.has(id),
    data: {},
  }));
}

function toEdges(
  graph: GraphDocument,
  selection: ReadonlySet<string>,
  colourOf: EditorCanvasProps["linkColourOf"],
): Edge[] {
  return graph.edges.map((edge, index) => ({
    id: edge.id ?? `edge ${index}`,
    type: "wave",
    source: edge.source,
    target: edge.target,
    sourceHandle: edgeHandle(edge, "source"),
    targetHandle: edgeHandle(edge, "target"),
    selected: selection.has(edge.id ?? ""),
    data: { isLink: edge.data.channel === "link", colour: colourOf(edge) },
  }));
}

type SelectChange = { type: string; id?: string; selected?: boolean };

function applySelection(
  changes: readonly SelectChange[],
  selection: ReadonlySet<string>,
  onSelect: (ids: Iterable<string>) => void,
) {
  const selects = changes.filter((change) => change.type === "select" && change.id !== undefined);
  if (selects.length === 0) return;
  const next = new Set(selection);
  for (const { id = "", selected } of selects) {
    if (selected) next.add(id);
    else next.delete(id);
  }
  onSelect(next);
}

/** Wires are drawn from port to port; one that cannot be says why. */
function useConnecting({ graph, onChange, portsOf }: EditorCanvasProps) {
  const ends = (
    connection: Pick<Connection, "source" | "target" | "sourceHandle" | "targetHandle">,
  ) => {
    const node = (id: string) => graph.nodes.find((each) => each.id === id);
    const source = findPort(node(connection.source), "source", connection.sourceHandle, portsOf);
    const target = findPort(node(connection.target), "target", connection.targetHandle, portsOf);
    return source && target ? { source, target } : null;
  };
  const onConnect = (connection: Connection) => {
    const found = ends(connection);
    if (!found) return;
    const refusal = refusalOf(found.source, found.target);
    if (refusal) showToast({ kind: "error", text: refusal });
    else onChange(connect(graph, found.source, found.target));
  };
  const onConnectEnd: OnConnectEnd = (_, { fromHandle, toHandle }) => {
    if (fromHandle && toHandle && fromHandle.type === toHandle.type) {
      const kind = fromHandle.type === "source" ? "outputs" : "inputs";
      showToast({
        kind: "error",
        text: `Two ${kind} cannot be connected: draw from an output to an input.`,
      });
    }
  };
  return { onConnect, onConnectEnd };
}

/** How far Shift and an arrow key move the selected steps, in px: one dot of the grid. */
const PUSHES = {
  ArrowLeft: { x: -20, y: 0 },
  ArrowRight: { x: 20, y: 0 },
  ArrowUp: { x: 0, y: -20 },
  ArrowDown: { x: 0, y: 20 },
};

/** Moves along the edges by arrow keys, and the selected steps with Shift. */
function useArrowKeys(
  { graph, selection, onSelect, onChange }: EditorCanvasProps,
  layout: ReturnType<typeof layoutEditor>,
  area: React.RefObject<HTMLDivElement | null>,
) {
  const { setCenter, getViewport } = useReactFlow();
  const [width, height] = [useStore((state) => state.width), useStore((state) => state.height)];
  const push = ({ x, y }: Position) => {
    const moved = [...selection].flatMap((id): [string, Position][] => {
      const at = layout.positions.get(id);
      return at ? [[id, { x: at.x + x, y: at.y + y }]] : [];
    });
    if (moved.length > 0) onChange(moveNodes(graph, new Map(moved)), "push");
  };
  return (event: React.KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && event.key in PUSHES) {
      event.preventDefault();
      return push(PUSHES[event.key as keyof typeof PUSHES]);
    }
    const focused = event.target instanceof HTMLElement ? event.target.dataset.step : undefined;
    const selected = graph.nodes.find(({ id }) => selection.has(id))?.id ?? focused ?? null;
    const next = stepAfterKey(event.key, selected, layout.lanes, graph.edges);
    if (!next) return;
    event.preventDefault();
    onSelect([next]);
    const at = layout.positions.get(next);
    const view = getViewport();
    const card = { width: EDITOR_SIZES.cardWidth, height: 82 };
    if (at && !isInView({ ...at, ...card }, view, { top: HEADER, width, height })) {
      void setCenter(at.x + card.width / 2, at.y + card.height / 2, { zoom: view.zoom });
    }
    requestAnimationFrame(() => {
      const step = area.current?.querySelector(`button[data-step="${CSS.escape(next)}"]`);
      if (step instanceof HTMLElement) step.focus({ preventScroll: true });
    });
  };
}

function StepNode({ id }: NodeProps) {
  const view = useContext(View);
  const node = view?.nodes.get(id);
  if (!view || !node) return null;
  return (
    <EditorNode
      {...node}
      isSelected={view.selection.has(id)}
      isTabStop={id === view.tabStop}
      onSelect={(chosen) => view.onSelect([chosen])}
      onOpen={view.onOpen}
    />
  );
}

type LinkEnds = Pick<EdgeProps, "sourceX" | "sourceY" | "targetX" | "targetY">;

/** Returns the way of a link past other cards of its column; null where none is between its ends. */
function pathAround({ sourceX, sourceY, targetX, targetY }: LinkEnds): string | null {
  const half = EDITOR_SIZES.cardWidth / 2;
  const isOfColumn = Math.abs(sourceX - targetX) < half;
  if (!isOfColumn || sourceY - targetY < EDITOR_SIZES.gap * 2) return null;
  const [from, to] = [
    { x: sourceX, y: sourceY },
    { x: targetX, y: targetY },
  ];
  return aroundPath(from, to, sourceX - half - 18);
}

function PlanEdge({ data, selected, ...ends }: EdgeProps) {
  const [bezier] = getBezierPath(ends);
  const path = data?.isLink === true ? (pathAround(ends) ?? bezier) : bezier;
  return (
    <>
      <WaveEdge
        path={path}
        from={{ x: ends.sourceX, y: ends.sourceY }}
        to={{ x: ends.targetX, y: ends.targetY }}
        status={selected ? "live" : "plan"}
        isLink={data?.isLink === true}
        colour={typeof data?.colour === "string" ? data.colour : undefined}
        hasEnds={false}
      />
      {/* What a pointer has to hit is wider than the line. */}
      <path d={path} className={styles.hit} />
    </>
  );
}
