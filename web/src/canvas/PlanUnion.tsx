import { useCallback, useMemo } from "react";
import type { GraphDocument, NodeStatus } from "@/api/types";
import { STATUS_WORDS, Status } from "@/ui/Status";
import { cardText } from "./cardText";
import type { LegendLine } from "./EdgeLegend";
import { unionOf } from "./graphUnion";
import styles from "./PlanUnion.module.css";
import { PLAN_WORDS, type PlanStep, planChangeWords, planSteps } from "./planSteps";
import { UnionCard } from "./UnionCard";
import { UnionGraph } from "./UnionGraph";

type PlanUnionProps = {
  label: string;
  before: GraphDocument;
  after: GraphDocument;
  /** The status of a step, where it has run or may run. */
  statusOf: (id: string) => NodeStatus | undefined;
  chosen: string | null;
  /** Nothing of it is decided yet. */
  isGhost?: boolean;
  onChoose: (id: string) => void;
};

const LEGEND: readonly LegendLine[] = [
  ["plan", "kept"],
  ["removed", "dropped"],
  ["added", "new"],
];

/** A plan before and after a change, laid over each other: what is new, what is dropped, what is kept. */
export function PlanUnion(props: PlanUnionProps) {
  const { label, before, after, statusOf, chosen, isGhost = false, onChoose } = props;
  const steps = useMemo(() => planSteps(before, after), [before, after]);
  const byId = useMemo(() => new Map(steps.map((step) => [step.node.id, step])), [steps]);
  const union = useMemo(() => unionOf([before, after], [...byId.keys()]), [before, after, byId]);
  const renderStep = useCallback(
    (id: string, isTabStop: boolean) => {
      const step = byId.get(id);
      return (
        step && (
          <PlanCard
            {...{ step, isTabStop }}
            isGhost={isGhost && step.change !== "same"}
            status={statusOf(id)}
            isSelected={id === chosen}
            onSelect={onChoose}
          />
        )
      );
    },
    [byId, statusOf, chosen, isGhost, onChoose],
  );
  return (
    <UnionGraph
      legend={before === after ? [] : LEGEND}
      header={({ ids }) => <span>{planChangeWords(ids.flatMap((id) => byId.get(id) ?? []))}</span>}
      {...{ label, union, renderStep, chosen, onChoose }}
    />
  );
}

type PlanCardProps = {
  step: PlanStep;
  /** It is not decided yet. */
  isGhost?: boolean;
  status: NodeStatus | undefined;
  isSelected: boolean;
  isTabStop: boolean;
  onSelect: (id: string) => void;
};

/** What is said of a step without a status. */
const STATE_WORDS = {
  ghost: "Not made yet",
  only_a: "Had not begun",
  only_b: "",
  changed: "",
  same: "",
};

/** A step before or after a change, with what becomes of it. */
export function PlanCard({ step: { node, change }, status, isGhost, ...choice }: PlanCardProps) {
  const name = node.name || node.id;
  const said = [name, PLAN_WORDS[change], status && STATUS_WORDS[status].toLowerCase()];
  return (
    <UnionCard
      id={node.id}
      type={node.type}
      word={PLAN_WORDS[change]}
      label={said.filter(Boolean).join(", ")}
      {...{ name, change, isGhost }}
      {...choice}
    >
      <span className={styles.line}>
        {status ? <Status status={status} /> : STATE_WORDS[isGhost ? "ghost" : change]}
      </span>
      <span className={styles.line} dir="auto">
        {cardText(node)}
      </span>
    </UnionCard>
  );
}
