import { useId } from "react";
import styles from "@/ui/Switch.module.css";

interface ToggleProps {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  /** Disables the control and is shown beside it. */
  disabledReason?: string | undefined;
}

/** On or off, at once; the label is beside it. */
export function Switch({ label, checked, onChange, disabledReason }: ToggleProps) {
  const reasonId = useId();
  return (
    <span className={styles.row}>
      <label className={styles.label}>
        <input
          type="checkbox"
          role="switch"
          className={styles.switch}
          checked={checked}
          aria-checked={checked}
          disabled={Boolean(disabledReason)}
          aria-describedby={disabledReason ? reasonId : undefined}
          onChange={(event) => onChange(event.target.checked)}
        />
        {label}
      </label>
      {disabledReason && (
        <span id={reasonId} className={styles.reason}>
          {disabledReason}
        </span>
      )}
    </span>
  );
}

/** Chosen or not, as part of a list or a form. */
export function Checkbox(props: ToggleProps & { hiddenLabel?: boolean }) {
  const { label, checked, onChange, disabledReason, hiddenLabel } = props;
  return (
    <label className={styles.label} title={disabledReason}>
      <input
        type="checkbox"
        className={styles.checkbox}
        checked={checked}
        disabled={Boolean(disabledReason)}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className={hiddenLabel ? "visually-hidden" : undefined}>{label}</span>
      {disabledReason && <span className={styles.reason}>{disabledReason}</span>}
    </label>
  );
}
