import { useState } from "react";
import { useLimits } from "@/api/queries";
import type { BudgetModel } from "@/api/types";
import { type JsonNumber, numberOf } from "@/json";
import { TextField } from "@/ui/Field";
import { formatCount, formatUsd } from "@/ui/format";
import styles from "./RunOptionsChip.module.css";

type Amount = keyof BudgetModel;

const AMOUNTS: readonly { name: Amount; label: string; isWhole: boolean }[] = [
  { name: "usd", label: "Dollars", isWhole: false },
  { name: "tokens", label: "Tokens", isWhole: true },
  { name: "calls", label: "Calls of models", isWhole: true },
  { name: "wall_s", label: "Seconds", isWhole: false },
];

type BudgetFieldsProps = {
  budget: BudgetModel;
  onChange: (budget: BudgetModel) => void;
};

/** What a run may use; once that is not enough, it asks. */
export function BudgetFields({ budget, onChange }: BudgetFieldsProps) {
  const limits = useLimits().data?.limits ?? [];
  const usual = (name: Amount) => limits.find((limit) => limit.name === `budget_${name}`)?.value;
  return (
    <fieldset className={styles.budget}>
      <legend>Budget</legend>
      <p>The run asks before it uses more. Time in which it is paused does not count.</p>
      {AMOUNTS.map(({ name, label, isWhole }) => (
        <AmountField
          key={name}
          label={label}
          isWhole={isWhole}
          usual={usualWords(name, usual(name))}
          value={numberOf(budget[name])}
          onChange={(amount) => {
            const { [name]: _, ...others } = budget;
            onChange(amount === null ? others : { ...others, [name]: amount });
          }}
        />
      ))}
    </fieldset>
  );
}

function usualWords(name: string, most: JsonNumber | undefined): string {
  if (most === undefined) return "No limit";
  return name === "usd" ? formatUsd(most) : formatCount(most);
}

type AmountFieldProps = {
  label: string;
  isWhole: boolean;
  usual: string;
  value: number | null;
  onChange: (value: number | null) => void;
};

function AmountField({ label, isWhole, usual, value, onChange }: AmountFieldProps) {
  const [text, setText] = useState(value === null ? "" : String(value));
  const isRight = text === "" || isAmount(text, isWhole);
  return (
    <TextField
      label={label}
      inputMode={isWhole ? "numeric" : "decimal"}
      placeholder={usual}
      value={text}
      error={isRight ? undefined : `A ${isWhole ? "whole number" : "number"} above 0, or nothing.`}
      onChange={(event) => {
        const next = event.target.value.trim();
        setText(next);
        if (next === "") onChange(null);
        else if (isAmount(next, isWhole)) onChange(Number(next));
      }}
    />
  );
}

function isAmount(text: string, isWhole: boolean): boolean {
  const amount = Number(text);
  return amount > 0 && Number.isFinite(amount) && (!isWhole || Number.isInteger(amount));
}
