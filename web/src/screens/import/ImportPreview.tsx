import { useId, useMemo } from "react";
import type { GraphDocument, ImportReport } from "@/api/types";
import { edgePath, linkPath, type Point } from "@/canvas/layout";
import { layoutPlan } from "@/canvas/planLayout";
import { formatAmount } from "@/ui/format";
import styles from "./ImportPreview.module.css";
import { outerNode } from "./importReport";

type ImportPreviewProps = {
  graph: GraphDocument;
  report: ImportReport;
  /** The paths of nodes that are marked. */
  shown: readonly string[];
};

const SIZES = { laneWidth: 148, cardWidth: 112, gap: 10 };
const HEIGHT = 26;
const PADDING = 4;
/** Of a name on a card, in characters. */
const LONGEST_NAME = 16;

/** The graph that a file became, small: what was changed and what is to be replaced, and what is marked. */
export function ImportPreview({ graph, report, shown }: ImportPreviewProps) {
  const drawn = useMemo(() => drawnGraph(graph, report), [graph, report]);
  const marked = new Set(shown.map(outerNode));
  const names = drawn.nodes.filter(({ id }) => marked.has(id)).map(({ name }) => name);
  const hatching = useId();
  const total = `${formatAmount(graph.nodes.length, "step")}, ${formatAmount(graph.edges.length, "edge")}`;
  return (
    <figure className={styles.preview}>
      <svg
        role="img"
        aria-label={`The graph: ${total}`}
        width={drawn.width}
        height={drawn.height}
        viewBox={`0 0 ${drawn.width} ${drawn.height}`}
      >
        <defs>
          <pattern
            id={hatching}
            width="6"
            height="6"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <line className={styles.hatch} x1="0" y1="0" x2="0" y2="6" />
          </pattern>
        </defs>
        {drawn.edges.map(({ id, path, isLink }) => (
          <path key={id} className={styles.edge} data-link={isLink} d={path} />
        ))}
        {drawn.nodes.map(({ id, name, outcome, x, y }) => (
          <g key={id} className={styles.node} data-outcome={outcome} data-marked={marked.has(id)}>
            <title>{name}</title>
            <rect x={x} y={y} width={SIZES.cardWidth} height={HEIGHT} rx="5" />
            {outcome === "placeholder" && (
              <rect
                x={x}
                y={y}
                width={SIZES.cardWidth}
                height={HEIGHT}
                rx="5"
                fill={`url(#${hatching})`}
              />
            )}
            <text x={x + 8} y={y + 17}>
              {shorten(name)}
            </text>
          </g>
        ))}
      </svg>
      <figcaption>{names.join(", ") || total}</figcaption>
    </figure>
  );
}

type DrawnNode = Point & {
  id: string;
  name: string;
  outcome: "mapped" | "changed" | "placeholder";
};

/** Returns where everything stands, and what became of it. */
function drawnGraph(graph: GraphDocument, report: ImportReport) {
  const layout = layoutPlan(graph, () => HEIGHT, SIZES);
  const changed = new Set(
    report.nodes
      .filter((node) => node.outcome === "changed")
      .flatMap((node) => node.target.map(outerNode)),
  );
  const placed = (id: string): Point | undefined => {
    const point = layout.positions.get(id);
    return point && { x: point.x + PADDING, y: point.y + PADDING };
  };
  const nodes = graph.nodes.flatMap((node): DrawnNode[] => {
    const point = placed(node.id);
    const isPlaceholder = node.type === "placeholder";
    const outcome = isPlaceholder ? "placeholder" : changed.has(node.id) ? "changed" : "mapped";
    return point ? [{ ...point, id: node.id, name: node.name || node.id, outcome }] : [];
  });
  const edges = graph.edges.flatMap(({ id, source, target, data }) => {
    const [from, to] = [placed(source), placed(target)];
    const isLink = data.channel === "link";
    return from && to
      ? [{ id: id ?? `${source} ${target}`, isLink, path: pathOf(from, to, isLink) }]
      : [];
  });
  return {
    nodes,
    edges,
    width: layout.width + 2 * PADDING,
    height: layout.height + 2 * PADDING,
  };
}

function pathOf(from: Point, to: Point, isLink: boolean): string {
  const half = { x: SIZES.cardWidth / 2, y: HEIGHT / 2 };
  if (isLink) {
    return linkPath({ x: from.x + half.x, y: from.y }, { x: to.x + half.x, y: to.y + HEIGHT });
  }
  return edgePath(
    { x: from.x + SIZES.cardWidth, y: from.y + half.y },
    { x: to.x, y: to.y + half.y },
  );
}

function shorten(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}
