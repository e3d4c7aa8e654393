import { problemText } from "@/api/errorText";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { Note } from "@/ui/Note";
import parts from "./parts.module.css";

type FailureBoxProps = {
  error: { message: string; hint?: string | null };
  /** Where the exception came from; only the operator gets it. */
  traceback?: string | undefined;
};

/** Why something failed: the message, the way out, and the traceback, to be copied together. */
export function FailureBox({ error, traceback }: FailureBoxProps) {
  const text = problemText(error);
  const whole = traceback ? `${text}\n\n${traceback}` : text;
  return (
    <div className={parts.failure}>
      <Note kind="error">{text}</Note>
      {traceback && (
        <details className={parts.fold} open>
          <summary>Traceback</summary>
          <pre className={parts.traceback}>{traceback}</pre>
        </details>
      )}
      <Button small kind="quiet" icon="copy" onClick={() => void copyText(whole)}>
        Copy error
      </Button>
    </div>
  );
}
