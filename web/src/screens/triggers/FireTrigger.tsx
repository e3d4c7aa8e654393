import { useState } from "react";
import { Link } from "react-router";
import { useFireTrigger } from "@/api/mutations";
import type { TriggerResponse } from "@/api/types";
import { readJson } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextArea } from "@/ui/Field";
import { Note } from "@/ui/Note";
import styles from "./TriggersScreen.module.css";

/** Sends a trigger something as a test, which starts a run. */
export function FireTrigger(props: { trigger: TriggerResponse; onClose: () => void }) {
  const [text, setText] = useState("");
  const fire = useFireTrigger();
  const error = text.trim() === "" || isJson(text) ? undefined : "It is no JSON.";
  const send = () => {
    const body = text.trim() === "" ? {} : { value: readJson(text) };
    fire.mutate({ triggerId: props.trigger.trigger_id, body });
  };
  return (
    <Dialog
      open
      onClose={props.onClose}
      title="Send a test delivery"
      description={`It starts a run of ${props.trigger.flow}, also if nothing is listened for.`}
      footer={
        <Button
          kind="primary"
          onClick={send}
          disabledReason={fire.isPending ? "Sending …" : error && "Write JSON, or nothing"}
        >
          Start the run
        </Button>
      }
    >
      <div className={styles.form}>
        <TextArea
          label="What it receives, as JSON"
          hint="Without it, what is typical: the sample of a webhook, the present time."
          error={error}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {fire.error && <ErrorNote error={fire.error} />}
        {fire.data && (
          <Note>
            It is started. <Link to={`/runs/${fire.data.execution_id}`}>Show the run</Link>
          </Note>
        )}
      </div>
    </Dialog>
  );
}

function isJson(text: string): boolean {
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}
