import { memo } from "react";
import { tokensOf } from "@/api/executionSummary";
import type { DocumentNode } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { CHANGE_WORDS, ChangeMark } from "@/screens/compare/ChangeMark";
import styles from "@/screens/compare/CompareCard.module.css";
import { type StepPair, timeWords } from "@/screens/compare/comparison";
import { SIDES, type Side, SideMark } from "@/screens/compare/SideMark";
import { formatAmount } from "@/ui/format";
import { STATUS_WORDS, Status } from "@/ui/Status";

interface CompareCardProps {
  step: StepPair;
  isSelected: boolean;
  /** Whether Tab stops here; one card of a canvas has it. */
  isTabStop: boolean;
  onSelect: (path: string) => void;
}

/** A step of two runs in three lines: its name and the change, then its status in each run. */
export const CompareCard = memo(function CompareCard(props: CompareCardProps) {
  const { step, isSelected, isTabStop, onSelect } = props;
  const type = step.nodes[1]?.type ?? step.nodes[0]?.type ?? "";
  return (
    <div className={styles.card} data-change={step.change} data-selected={isSelected}>
      <div className={styles.top}>
        <TypeIcon type={type} />
        <button
          type="button"
          className={styles.name}
          title={step.name}
          tabIndex={isTabStop ? 0 : -1}
          aria-pressed={isSelected}
          aria-label={spokenLabel(step)}
          data-step={step.path}
          onClick={() => onSelect(step.path)}
        >
          {step.name}
        </button>
        <ChangeMark change={step.change} />
      </div>
      {SIDES.map((side, index) => (
        <SideLine key={side} side={side} node={step.nodes[index]} />
      ))}
    </div>
  );
});

function SideLine({ side, node }: { side: Side; node: DocumentNode | undefined }) {
  const tokens = node ? tokensOf(node.usage) : 0;
  return (
    <div className={styles.side}>
      <SideMark side={side} small />
      {node ? <Status status={node.status} /> : <span>not there</span>}
      <span className={styles.meta}>{tokens > 0 && formatAmount(tokens, "token")}</span>
      <span className={styles.duration}>{node && timeWords(node)}</span>
    </div>
  );
}

function spokenLabel({ name, change, nodes }: StepPair): string {
  const statuses = SIDES.flatMap((side, index) => {
    const node = nodes[index];
    return node ? `${side} ${STATUS_WORDS[node.status].toLowerCase()}` : [];
  });
  return [name, CHANGE_WORDS[change], ...statuses].join(", ");
}
