import { type ReactNode, useState } from "react";
import { PlanLanes } from "@/canvas/PlanLanes";
import { TypeIcon } from "@/canvas/TypeIcon";
import styles from "@/screens/goal/PlanPanel.module.css";
import type { PlanView, Stat } from "@/screens/goal/planView";
import { Segmented } from "@/ui/Segmented";

type Shape = "lanes" | "list" | "json";

const SHAPES = [
  { value: "lanes", label: "Lanes" },
  { value: "list", label: "List" },
  { value: "json", label: "JSON" },
] as const;

interface PlanPanelProps {
  view: PlanView;
  isWriting: boolean;
  troubled: ReadonlySet<string>;
  /** The state in words, at the left of the head. */
  state: ReactNode;
  /** In the head, before and after the choice of shape. */
  choices?: ReactNode;
  controls?: ReactNode;
  stats: readonly Stat[];
  /** At the right of the foot. */
  actions: ReactNode;
}

/** The plan in a box: state above, lanes, list or JSON, forecast and actions below. */
export function PlanPanel(props: PlanPanelProps) {
  const [shape, setShape] = useState<Shape>("lanes");
  return (
    <section className={styles.panel} aria-label="The plan">
      <header className={styles.head}>
        <div className={styles.state}>{props.state}</div>
        {props.choices}
        <Segmented label="Show the plan as" value={shape} options={SHAPES} onChange={setShape} />
        {props.controls}
      </header>
      <div className={styles.body}>
        <PlanBody shape={shape} {...props} />
      </div>
      <footer className={styles.foot}>
        <dl className={styles.stats}>
          {props.stats.map(({ label, value }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <div className={styles.actions}>{props.actions}</div>
      </footer>
    </section>
  );
}

function PlanBody({ shape, view, isWriting, troubled }: PlanPanelProps & { shape: Shape }) {
  if (shape === "json") {
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
      <pre className={styles.json} tabIndex={0}>
        {view.json || "Nothing is written yet."}
      </pre>
    );
  }
  if (shape === "list") return <StepList view={view} />;
  return (
    <PlanLanes steps={view.steps} edges={view.edges} isWriting={isWriting} troubled={troubled} />
  );
}

function StepList({ view: { steps, edges } }: { view: PlanView }) {
  const names = new Map(steps.map(({ id, name }) => [id, name]));
  return (
    <ol className={styles.list}>
      {steps.map(({ id, name, type, description }) => {
        const needs = edges.flatMap((edge) =>
          edge.target === id ? (names.get(edge.source) ?? []) : [],
        );
        return (
          <li key={id} className={styles.step}>
            <TypeIcon type={type} />
            <div className={styles.words}>
              <b className={styles.name}>{name}</b>
              <p dir="auto">{description}</p>
              {needs.length > 0 && <p className={styles.needs}>After {needs.join(", ")}</p>}
            </div>
            <span className={styles.type}>{type}</span>
          </li>
        );
      })}
    </ol>
  );
}
