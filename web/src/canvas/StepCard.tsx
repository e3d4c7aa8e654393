import { memo, type ReactNode } from "react";
import { Icon } from "@/ui/icons";
import { Status, type StatusName } from "@/ui/Status";
import styles from "./StepCard.module.css";
import { TypeIcon } from "./TypeIcon";

export type StepCardProps = {
  id: string;
  name: string;
  type: string;
  status: StatusName;
  /** Tokens, attempt or the branch taken; one short text. */
  meta?: string;
  duration?: string;
  /** The newest words of the step, its error, or why it did not run. */
  words?: string;
  /** The text still grows: its end is shown instead of its start. */
  isStreaming?: boolean;
  isSelected?: boolean;
  /** Whether Tab stops here; one card of a canvas has it. */
  isTabStop?: boolean;
  /** Buttons in place of the words, for a step that waits. */
  actions?: ReactNode;
  /** Drawn as a box in the colour of its status, for a view from far away. */
  isBox?: boolean;
  /** How much is inside the step: "3 rounds". */
  amountInside?: string;
  /** What is inside the step, below its three lines, while it is unfolded. */
  inside?: ReactNode;
  /** Without it, only the amount is shown. */
  onFold?: ((id: string, isOpen: boolean) => void) | undefined;
  onSelect?: (id: string) => void;
};

/** A step in three fixed lines: name, status, words. It keeps its size until it is unfolded. */
export const StepCard = memo(function StepCard(props: StepCardProps) {
  const { type, status, isSelected = false, isBox = false } = props;
  return (
    <div className={styles.card} data-status={status} data-selected={isSelected} data-box={isBox}>
      {isBox ? (
        <Name {...props} />
      ) : (
        <>
          <div className={styles.top}>
            <TypeIcon type={type} />
            <Name {...props} />
            {props.amountInside && <Inside {...props} amount={props.amountInside} />}
          </div>
          <div className={styles.middle}>
            <Status status={status} />
            <span className={styles.meta}>{props.meta}</span>
            <span className={styles.duration}>{props.duration}</span>
          </div>
          {props.actions ? (
            <div className={styles.actions}>{props.actions}</div>
          ) : (
            <Words text={props.words ?? ""} isStreaming={props.isStreaming ?? false} />
          )}
          {props.inside && <div className={styles.inside}>{props.inside}</div>}
        </>
      )}
    </div>
  );
});

function Name(props: StepCardProps) {
  const { id, name, isTabStop = false, isBox = false, onSelect } = props;
  return (
    <button
      type="button"
      className={styles.name}
      title={name}
      tabIndex={isTabStop ? 0 : -1}
      aria-pressed={props.isSelected ?? false}
      aria-label={spokenLabel(props)}
      data-step={id}
      onClick={() => onSelect?.(id)}
    >
      {!isBox && name}
    </button>
  );
}

function Inside(props: StepCardProps & { amount: string }) {
  const { id, name, isTabStop, inside, onFold, amount } = props;
  const isOpen = inside !== undefined;
  if (!onFold) return <span className={styles.amount}>{amount}</span>;
  return (
    <button
      type="button"
      className={styles.fold}
      tabIndex={isTabStop ? 0 : -1}
      aria-expanded={isOpen}
      aria-label={`${amount} inside ${name}`}
      onClick={() => onFold(id, !isOpen)}
    >
      {amount}
      <Icon name={isOpen ? "up" : "down"} small />
    </button>
  );
}

function Words({ text, isStreaming }: { text: string; isStreaming: boolean }) {
  return (
    <div
      className={isStreaming ? styles.tail : styles.words}
      title={isStreaming ? undefined : text}
    >
      {isStreaming ? <bdi>{text}</bdi> : text}
    </div>
  );
}

function spokenLabel({ name, status, duration }: StepCardProps): string {
  return [name, status.replace("_", " "), duration].filter(Boolean).join(", ");
}
