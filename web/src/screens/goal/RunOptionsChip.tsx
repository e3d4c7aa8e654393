import { useState } from "react";
import { BudgetFields } from "@/screens/goal/BudgetFields";
import type { RunOptions } from "@/screens/goal/goalDraft";
import styles from "@/screens/goal/RunOptionsChip.module.css";
import { Chip } from "@/ui/Chip";
import { SelectField, TextField } from "@/ui/Field";
import { amountWords } from "@/ui/format";
import { Popover } from "@/ui/Popover";

interface RunOptionsProps {
  options: RunOptions;
  onChange: (options: RunOptions) => void;
}

/** The chip that opens the run options; it names those that differ from the defaults. */
export function RunOptionsChip({ options, onChange }: RunOptionsProps) {
  const changes = describeOptions(options);
  const chip = <Chip icon="options">{changes ? `Options: ${changes}` : "Options"}</Chip>;
  return (
    <Popover trigger={chip} label="Options">
      <div className={styles.options}>
        <SelectField
          label="Start a step"
          value={options.scheduling ?? "eager"}
          onChange={(event) =>
            onChange({
              ...options,
              scheduling: event.target.value as NonNullable<RunOptions["scheduling"]>,
            })
          }
        >
          <option value="eager">The moment it is ready</option>
          <option value="waves">With its wave</option>
        </SelectField>
        <SelectField
          label="If a step fails"
          value={options.on_failure ?? "continue"}
          onChange={(event) =>
            onChange({
              ...options,
              on_failure: event.target.value as NonNullable<RunOptions["on_failure"]>,
            })
          }
        >
          <option value="continue">Finish what does not need it</option>
          <option value="stop">Stop the run</option>
        </SelectField>
        <ParallelField
          value={options.max_parallel ?? null}
          onChange={(max_parallel) => onChange({ ...options, max_parallel })}
        />
        <BudgetFields
          budget={options.budget ?? {}}
          onChange={(budget) => onChange({ ...options, budget })}
        />
      </div>
    </Popover>
  );
}

interface ParallelFieldProps {
  value: number | null;
  onChange: (value: number | null) => void;
}

function ParallelField({ value, onChange }: ParallelFieldProps) {
  const [text, setText] = useState(value === null ? "" : String(value));
  const isRight = text === "" || /^[1-9]\d{0,3}$/.test(text);
  return (
    <TextField
      label="Steps at the same time"
      inputMode="numeric"
      placeholder="As many as the service allows"
      value={text}
      error={isRight ? undefined : "A whole number from 1 to 9999, or nothing."}
      onChange={(event) => {
        const next = event.target.value.trim();
        setText(next);
        if (next === "") onChange(null);
        else if (/^[1-9]\d{0,3}$/.test(next)) onChange(Number(next));
      }}
    />
  );
}

/** Returns the options that differ from the defaults, in words. */
export function describeOptions(options: RunOptions): string {
  return [
    options.scheduling === "waves" && "wave by wave",
    options.on_failure === "stop" && "stop at a failure",
    options.max_parallel && `${options.max_parallel} at a time`,
    ...Object.entries(options.budget ?? {}).map(
      ([name, most]) => most != null && `at most ${amountWords(name, Number(most))}`,
    ),
  ]
    .filter(Boolean)
    .join(", ");
}
