import { type CSSProperties, useMemo } from "react";
import type { GraphDocument } from "@/api/types";
import { classes } from "@/ui/classes";
import { CARD_HEIGHT, edgePath, type Layout, linkPath, type Point } from "./layout";
import styles from "./PlanLanes.module.css";
import { layoutPlan } from "./planLayout";
import { TypeIcon } from "./TypeIcon";

export type PlannedStep = { id: string; name: string; type: string; description: string };
export type PlannedEdge = { source: string; target: string; isLink: boolean };

type PlanLanesProps = {
  steps: readonly PlannedStep[];
  edges: readonly PlannedEdge[];
  /** The plan is still being written: the newest step is marked, and a place is kept for the next. */
  isWriting?: boolean;
  /** Steps with problems, by id. */
  troubled?: ReadonlySet<string>;
};

const SIZES = { laneWidth: 364, cardWidth: 308, gap: 12 };
const HEADER = 40;

/** A plan as lanes of cards, to be read; it has no zoom and grows while a model writes it. */
export function PlanLanes({ steps, edges, isWriting = false, troubled }: PlanLanesProps) {
  const layout = useMemo(
    () => layoutPlan(toGraph(steps, edges), () => CARD_HEIGHT, SIZES),
    [steps, edges],
  );
  const byId = new Map(steps.map((step) => [step.id, step]));
  const newest = isWriting ? steps.at(-1)?.id : undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section className={styles.scroller} aria-label="Plan as waves" tabIndex={0}>
      <div
        className={styles.lanes}
        style={cssVariables({ "--plan-height": `${layout.height + HEADER + 20}px` })}
      >
        <Edges edges={edges} layout={layout} newest={newest} />
        {layout.lanes.map((lane) => (
          <section key={lane.wave} className={styles.lane} aria-label={`Wave ${lane.wave}`}>
            <header className={styles.header}>
              <b>Wave {lane.wave}</b>
              <span>{lane.ids.length === 1 ? "1 step" : `${lane.ids.length} steps`}</span>
            </header>
            <ul
              style={cssVariables({
                "--lane-top": `${layout.positions.get(lane.ids[0] ?? "")?.y ?? 0}px`,
              })}
            >
              {lane.ids.map((id) => (
                <Card
                  key={id}
                  step={byId.get(id)}
                  isNew={id === newest}
                  isTroubled={troubled?.has(id) ?? false}
                />
              ))}
            </ul>
          </section>
        ))}
        {isWriting && <Placeholder isFirst={steps.length === 0} />}
      </div>
    </section>
  );
}

/** Returns the layout's input for a plan that may still be growing. */
function toGraph(steps: readonly PlannedStep[], edges: readonly PlannedEdge[]): GraphDocument {
  return {
    nodes: steps.map(({ id, type }) => ({ id, type })),
    edges: edges.map(({ source, target, isLink }) => ({
      source,
      target,
      data: { channel: isLink ? "link" : "flow" },
    })),
  };
}

function Edges(props: {
  edges: readonly PlannedEdge[];
  layout: Layout;
  newest: string | undefined;
}) {
  const { edges, layout, newest } = props;
  // Several edges between two steps are one line.
  const lines = new Map(edges.map((edge) => [`${edge.source} ${edge.target}`, edge]));
  return (
    <svg
      className={styles.edges}
      width={layout.width}
      height={layout.height + HEADER}
      aria-hidden="true"
    >
      {[...lines].map(([key, { source, target, isLink }]) => {
        const [from, to] = [layout.positions.get(source), layout.positions.get(target)];
        if (!from || !to) return null;
        const ends = isLink ? linkEnds(from, to) : flowEnds(from, to);
        const path = isLink ? linkPath(...ends) : edgePath(...ends);
        return (
          <g key={key} data-link={isLink} data-live={target === newest}>
            <path d={path} />
            {ends.map(({ x, y }) => (
              <circle key={`${x} ${y}`} cx={x} cy={y} r="3.5" />
            ))}
          </g>
        );
      })}
    </svg>
  );
}

/** From the right side of a card to the left side of the next. */
function flowEnds(from: Point, to: Point): [Point, Point] {
  const middle = HEADER + CARD_HEIGHT / 2;
  return [
    { x: from.x + SIZES.cardWidth, y: from.y + middle },
    { x: to.x, y: to.y + middle },
  ];
}

/** From the top of what is linked to the bottom of what uses it. */
function linkEnds(from: Point, to: Point): [Point, Point] {
  const half = SIZES.cardWidth / 2;
  return [
    { x: from.x + half, y: from.y + HEADER },
    { x: to.x + half, y: to.y + HEADER + CARD_HEIGHT },
  ];
}

function Card(props: { step: PlannedStep | undefined; isNew: boolean; isTroubled: boolean }) {
  const { step, isNew, isTroubled } = props;
  if (!step) return null;
  return (
    <li className={classes(styles.card, isNew && styles.new, isTroubled && styles.troubled)}>
      <div className={styles.top}>
        <TypeIcon type={step.type} />
        <span className={styles.name} title={step.name}>
          {step.name}
        </span>
      </div>
      <p className={styles.description} dir="auto" title={step.description}>
        {step.description}
      </p>
    </li>
  );
}

function Placeholder({ isFirst }: { isFirst: boolean }) {
  return (
    <div className={classes(styles.lane, styles.next)} aria-hidden="true">
      <div className={styles.header} />
      <div className={styles.placeholder} data-first={isFirst} />
    </div>
  );
}

function cssVariables(values: Record<`--${string}`, string>): CSSProperties {
  return values as CSSProperties;
}
