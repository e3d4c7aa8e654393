import {
  type Connection,
  ConnectionMode,
  type EdgeChange,
  type EdgeProps,
  Handle,
  type NodeChange,
  type NodeHandle,
  type NodeProps,
  type OnConnectEnd,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useStore,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import {
  type CSSProperties,
  createContext,
  type ReactNode,
  useContext,
  useMemo,
  useRef,
  useState,
} from "react";
import {
  type CanvasEdge,
  type CanvasStep,
  type StepNodeType,
  toLines,
  toNodes,
} from "./flowElements";
import { stepKeys } from "./keyboard";
import styles from "./LaneCanvas.module.css";
import { LaneOverlay } from "./LaneOverlay";
import {
  aroundPath,
  edgePath,
  type Lane,
  type LayoutSizes,
  layoutLanes,
  linkPath,
  type Point,
} from "./layout";
import { useCanvasView } from "./useCanvasView";
import { type EdgeStatus, WaveEdge } from "./WaveEdge";
import { ZoomTools } from "./ZoomTools";

/** How much a card shows: a box in a view from far away, words, or its buttons too. */
export type CardDetail = "box" | "words" | "full";

/** What can be done to a graph that is not only looked at. */
export type Editing = {
  /** Steps have been dragged, or pushed by keys, to other places. */
  onMove: (places: ReadonlyMap<string, Point>, kind: "move" | "push") => void;
  onConnect: (connection: Connection) => void;
  onConnectEnd: OnConnectEnd;
};

type LaneCanvasProps = {
  /** The name of the canvas, for screen readers. */
  label: string;
  steps: readonly CanvasStep[];
  edges: readonly CanvasEdge[];
  sizes?: LayoutSizes;
  /** Draws a card; its button has the id as `data-step`. */
  renderStep: (id: string, detail: CardDetail) => ReactNode;
  /** A hook: the status of an edge. */
  useEdgeStatus: (id: string) => EdgeStatus;
  laneHeader: (lane: Lane) => ReactNode;
  activeWave?: number | undefined;
  /** The ids of selected steps; in an editor also of edges. */
  selection: ReadonlySet<string>;
  onSelect: (ids: Iterable<string>) => void;
  editing?: Editing;
  /** Keeps the wave at work in view. */
  isFollowing?: boolean;
  onFollow?: ((isFollowing: boolean) => void) | undefined;
  /** What tools above the canvas take of it, in px. */
  toolsHeight?: number;
  zoomAt?: "bottom-left" | "bottom-right";
  /** Legends and an overview. */
  children?: ReactNode;
};

type CanvasParts = Pick<LaneCanvasProps, "renderStep" | "useEdgeStatus"> & {
  sizes: LayoutSizes;
  isEdited: boolean;
};

export const LANE_SIZES: LayoutSizes = { laneWidth: 344, cardWidth: 256, gap: 12 };
/** Motion on the cards and edges of more steps takes half of the frames; words and colours say the same. */
const MOST_STEPS_MOVING = 40;
/** Below this zoom a card is a box. */
const FAR = 0.4;
/** Below this zoom a button of a card, of 32 px, is smaller than 24 px (WCAG 2.5.8). */
const SMALLEST_BUTTONS = 24 / 32;
const NOTHING: ReadonlySet<string> = new Set();

const Parts = createContext<CanvasParts | null>(null);
const NODE_TYPES = { step: StepNode };
const EDGE_TYPES = { wave: FlowEdge };

/** The steps of a graph in lanes, one per wave: to look at, and with `editing` to change. */
export function LaneCanvas(props: LaneCanvasProps) {
  const { renderStep, useEdgeStatus, sizes = LANE_SIZES } = props;
  const isEdited = props.editing !== undefined;
  const parts = useMemo(
    () => ({ renderStep, useEdgeStatus, sizes, isEdited }),
    [renderStep, useEdgeStatus, sizes, isEdited],
  );
  return (
    <ReactFlowProvider>
      <Parts.Provider value={parts}>
        <Canvas {...props} sizes={sizes} />
      </Parts.Provider>
    </ReactFlowProvider>
  );
}

function Canvas(props: LaneCanvasProps & { sizes: LayoutSizes }) {
  const { steps, edges, sizes, selection, onSelect, editing, toolsHeight = 0 } = props;
  const layout = useMemo(() => layoutLanes(steps, edges, sizes), [steps, edges, sizes]);
  const [dragged, setDragged] = useState<ReadonlyMap<string, Point>>(new Map());
  // Only what can be changed is marked by xyflow; cards draw their own selection.
  const marked = editing ? selection : NOTHING;
  const known = useRef<ReadonlyMap<string, StepNodeType>>(new Map());
  const nodes = useMemo(() => {
    const made = toNodes(steps, { edges, layout, sizes, dragged, marked }, known.current);
    known.current = new Map(made.map((node) => [node.id, node]));
    return made;
  }, [steps, edges, layout, sizes, dragged, marked]);
  const lines = useMemo(() => toLines(edges, marked), [edges, marked]);
  const area = useRef<HTMLDivElement>(null);
  const view = useCanvasView({
    layout,
    sizes,
    toolsHeight,
    selected: steps.find(({ id }) => selection.has(id))?.id,
    activeWave: props.activeWave,
    isFollowing: props.isFollowing ?? false,
    onFollow: props.onFollow,
  });
  const onKeyDown = stepKeys({ ...props, layout, view, area });
  const onNodesChange = (changes: NodeChange[]) => {
    const moves = changes.filter((change) => change.type === "position");
    const places = new Map(dragged);
    for (const { id, position } of moves) if (position) places.set(id, position);
    const isDone = moves.length > 0 && moves.every((move) => !move.dragging);
    if (isDone) editing?.onMove(places, "move");
    if (moves.length > 0) setDragged(isDone ? new Map() : places);
    applySelection(changes, selection, onSelect);
  };
  const handlers = useSteady({
    onNodesChange,
    onEdgesChange: (changes: EdgeChange[]) => applySelection(changes, selection, onSelect),
    onConnect: (connection: Connection) => editing?.onConnect(connection),
    onConnectEnd: (...given: Parameters<OnConnectEnd>) => editing?.onConnectEnd(...given),
  });
  const viewing = useSteady({ onPaneClick: () => onSelect([]), onMove: view.onMove });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be announced as a form
    <div
      className={styles.canvas}
      data-still={steps.length > MOST_STEPS_MOVING}
      data-edited={editing !== undefined}
      style={{ "--lane-header-top": `${toolsHeight}px` } as CSSProperties}
      role="group"
      aria-label={props.label}
      ref={area}
      onKeyDown={onKeyDown}
    >
      <ReactFlow
        nodes={nodes}
        edges={lines}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        {...viewing}
        {...(editing && handlers)}
        nodesDraggable={editing !== undefined}
        nodesConnectable={editing !== undefined}
        elementsSelectable={editing !== undefined}
        connectionMode={ConnectionMode.Strict}
        connectionRadius={28}
        selectionMode={SelectionMode.Partial}
        nodesFocusable={false}
        edgesFocusable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        onlyRenderVisibleElements
        panOnScroll
        minZoom={0.1}
        maxZoom={1.5}
        attributionPosition={editing ? "top-right" : "bottom-left"}
      >
        <LaneOverlay
          lanes={layout.lanes}
          laneWidth={sizes.laneWidth}
          activeWave={props.activeWave}
          header={props.laneHeader}
        />
        <ZoomTools
          view={view}
          position={props.zoomAt ?? "bottom-right"}
          isFollowing={props.isFollowing}
          onFollow={props.onFollow}
        />
        {props.children}
      </ReactFlow>
    </div>
  );
}

type Handlers = Record<string, (...given: never[]) => void>;

/** Returns handlers that are the same in every render and call the newest ones: xyflow tells all its nodes and edges
 * when it is given another handler. */
function useSteady<Given extends Handlers>(handlers: Given): Given {
  const latest = useRef(handlers);
  latest.current = handlers;
  const [steady] = useState(() => {
    const call = (name: string) => [name, (...given: never[]) => latest.current[name]?.(...given)];
    return Object.fromEntries(Object.keys(handlers).map(call)) as Given;
  });
  return steady;
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

function StepNode({ id, data }: NodeProps<StepNodeType>) {
  const parts = useContext(Parts);
  const detail = useStore(({ transform: [, , zoom] }) => detailAt(zoom));
  const hasSockets = parts?.isEdited && detail !== "box";
  return (
    <>
      {parts?.renderStep(id, detail)}
      {/* xyflow measures the handles of what is drawn. */}
      {!hasSockets &&
        data.handles.map((handle) => <HiddenHandle key={keyOf(handle)} {...handle} />)}
    </>
  );
}

function keyOf({ type, id }: NodeHandle): string {
  return `${type} ${id}`;
}

function HiddenHandle({ id, type, position, x, y, width, height }: NodeHandle) {
  return (
    <Handle
      {...(id && { id })}
      {...{ type, position }}
      className={styles.handle}
      style={{ left: x, top: y, width, height }}
      isConnectable={false}
    />
  );
}

function detailAt(zoom: number): CardDetail {
  if (zoom < FAR) return "box";
  return zoom < SMALLEST_BUTTONS ? "words" : "full";
}

function FlowEdge({ id, data, selected, sourceX, sourceY, targetX, targetY }: EdgeProps) {
  const parts = useContext(Parts);
  if (!parts) throw new Error("an edge is drawn outside its canvas");
  const status = parts.useEdgeStatus(id);
  const isNear = useStore((state) => state.transform[2] >= FAR);
  const isLink = data?.isLink === true;
  const [from, to] = [
    { x: sourceX, y: sourceY },
    { x: targetX, y: targetY },
  ];
  const path = isLink
    ? (pathAround(from, to, parts.sizes) ?? linkPath(from, to))
    : edgePath(from, to);
  return (
    <>
      <WaveEdge
        {...{ path, from, to, isLink }}
        status={selected ? "live" : status}
        colour={typeof data?.colour === "string" ? data.colour : undefined}
        // The sockets of cards that are edited mark the ends.
        hasEnds={isNear && !parts.isEdited}
      />
      {/* What a pointer has to hit is wider than the line. */}
      {parts.isEdited && <path d={path} className={styles.hit} />}
    </>
  );
}

/** Returns the way of a link past other cards of its column; null where none is between its ends. */
function pathAround(from: Point, to: Point, { cardWidth, gap }: LayoutSizes): string | null {
  const half = cardWidth / 2;
  const isOfColumn = Math.abs(from.x - to.x) < half;
  if (!isOfColumn || from.y - to.y < gap * 2) return null;
  return aroundPath(from, to, from.x - half - 18, gap);
}
