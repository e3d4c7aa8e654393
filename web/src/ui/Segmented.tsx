import { ToggleGroup } from "radix-ui";
import type { ReactNode } from "react";
import { formatCount } from "@/ui/format";
import styles from "@/ui/Segmented.module.css";

interface SegmentedProps<Value extends string> {
  /** The name of the choice, for screen readers. */
  label: string;
  value: Value;
  options: readonly { value: Value; label: string; sign?: ReactNode; count?: number | undefined }[];
  onChange: (value: Value) => void;
}

/** A choice of one from a few, all shown. */
export function Segmented<Value extends string>(props: SegmentedProps<Value>) {
  return (
    <ToggleGroup.Root
      type="single"
      className={styles.group}
      aria-label={props.label}
      value={props.value}
      onValueChange={(value) => value && props.onChange(value as Value)}
    >
      {props.options.map((option) => (
        <ToggleGroup.Item key={option.value} value={option.value} className={styles.item}>
          {option.sign}
          {option.label}
          {option.count !== undefined && (
            <span className={styles.count}>{formatCount(option.count)}</span>
          )}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
