import type { ReactNode } from "react";
import { type Change, ChangeMark } from "./ChangeMark";
import { TypeIcon } from "./TypeIcon";
import styles from "./UnionCard.module.css";

type UnionCardProps = {
  id: string;
  name: string;
  type: string;
  change: Change;
  /** What became of the step; "" marks nothing. */
  word: string;
  /** What screen readers say of it. */
  label: string;
  isSelected: boolean;
  /** What becomes of it is not decided yet. */
  isGhost?: boolean;
  /** Whether Tab stops here; one card of a canvas has it. */
  isTabStop: boolean;
  onSelect: (id: string) => void;
  /** The two lines below its name. */
  children: ReactNode;
};

/** A step of two graphs: its name and what became of it, then two lines. */
export function UnionCard(props: UnionCardProps) {
  const { id, name, type, change, word, label, isSelected, isTabStop, onSelect, children } = props;
  const { isGhost = false } = props;
  return (
    <div
      className={styles.card}
      data-change={change}
      data-selected={isSelected}
      data-ghost={isGhost}
    >
      <div className={styles.top}>
        <TypeIcon type={type} />
        <button
          type="button"
          className={styles.name}
          title={name}
          tabIndex={isTabStop ? 0 : -1}
          aria-pressed={isSelected}
          aria-label={label}
          data-step={id}
          onClick={() => onSelect(id)}
        >
          {name}
        </button>
        {word !== "" && <ChangeMark change={change} word={word} />}
      </div>
      {children}
    </div>
  );
}
