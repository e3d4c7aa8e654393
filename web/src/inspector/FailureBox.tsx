import type { ReactNode } from "react";
import { problemText } from "@/api/errorText";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { Note } from "@/ui/Note";
import parts from "./parts.module.css";

type FailureBoxProps = {
  error: { code: string; message: string; hint?: string | null };
  /** What failed: a step, by its path, and in which attempt; null for the run as a whole. */
  where: { path: string; attempt: number } | null;
  /** Where the exception came from; only the operator gets it. */
  traceback?: string | undefined;
  /** What leads on, beside the button that copies all of it. */
  children?: ReactNode;
};

/** Why something failed: message, way out, place and traceback, to be copied together. */
export function FailureBox({ error, where, traceback, children }: FailureBoxProps) {
  const text = problemText(error);
  const facts = [
    ...(where ? [`step ${where.path}`] : []),
    ...(where && where.attempt > 1 ? [`attempt ${where.attempt}`] : []),
    error.code,
  ];
  const whole = [text, facts.join(", "), traceback].filter(Boolean).join("\n\n");
  return (
    <div className={parts.failure}>
      <Note kind="error">{text}</Note>
      <p className={parts.place}>
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      {traceback && (
        <details className={parts.fold} open>
          <summary>Traceback</summary>
          <pre className={parts.traceback}>{traceback}</pre>
        </details>
      )}
      <div className={parts.shows}>
        {children}
        <Button
          small
          kind={children ? "quiet" : "plain"}
          icon="copy"
          onClick={() => void copyText(whole)}
        >
          Copy error
        </Button>
      </div>
    </div>
  );
}
