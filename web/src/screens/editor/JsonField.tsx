import { lazy, Suspense, useState } from "react";
import { readJson, writeJson } from "@/json";
import { Skeleton } from "@/ui/Skeleton";
import styles from "./JsonField.module.css";

const JsonEditor = lazy(() =>
  import("./JsonEditor").then((module) => ({ default: module.JsonEditor })),
);

type JsonFieldProps = {
  label: string;
  value: unknown;
  /** Returns what is wrong with it, null if it is taken. */
  onChange: (value: unknown) => string | null;
  /** Fills its place instead of growing with its text. */
  fill?: boolean;
};

/** JSON to be edited; what is not right (yet) stays in the field and is not passed on. */
export function JsonField({ label, value, onChange, fill = false }: JsonFieldProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const read = (text: string) => {
    try {
      const refusal = onChange(readJson(text));
      setProblem(refusal && `Not taken yet: ${refusal}`);
    } catch (fault) {
      setProblem(`Not JSON yet: ${fault instanceof Error ? fault.message : fault}`);
    }
  };
  return (
    <div className={styles.field} data-fill={fill}>
      <Suspense fallback={<Skeleton label="Loading the editor" lines={6} />}>
        <JsonEditor label={label} text={writeJson(value, 2)} onText={read} />
      </Suspense>
      {problem && (
        <p className={styles.problem} role="status">
          {problem}
        </p>
      )}
    </div>
  );
}
