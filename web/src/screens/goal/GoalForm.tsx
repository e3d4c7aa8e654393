import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import styles from "@/screens/goal/GoalForm.module.css";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import { useShortcuts } from "@/ui/shortcuts";

interface GoalFormProps {
  prompt: string;
  onChange: (prompt: string) => void;
  onSubmit: () => void;
  /** The model and the options, under the prompt. */
  children: ReactNode;
}

/** The prompt: the goal in the reader's words. */
export function GoalForm({ prompt, onChange, onSubmit, children }: GoalFormProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [isMissing, setMissing] = useState(false);
  const errorId = useId();
  useEffect(() => field.current?.focus(), []);
  const submit = () => {
    setMissing(!prompt.trim());
    if (prompt.trim()) onSubmit();
    else field.current?.focus();
  };
  useShortcuts("New goal", [{ keys: "mod+enter", does: "Make a plan", run: submit }]);
  return (
    <form
      className={styles.prompt}
      aria-label="Goal"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={field}
        className={styles.text}
        aria-label="Goal"
        aria-keyshortcuts="Control+Enter"
        aria-invalid={isMissing || undefined}
        aria-describedby={isMissing ? errorId : undefined}
        placeholder="Say it in your own words. You see every step before it runs."
        value={prompt}
        onChange={(event) => {
          setMissing(false);
          onChange(event.target.value);
        }}
      />
      {isMissing && (
        <p id={errorId} className={styles.missing}>
          <Icon name="error" small />
          Say first what should get done.
        </p>
      )}
      <div className={styles.foot}>
        {children}
        <span className={styles.submit}>
          <Button type="submit" kind="primary" keys="Ctrl ↵">
            Make a plan
          </Button>
        </span>
      </div>
    </form>
  );
}
