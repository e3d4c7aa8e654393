import type { ReactNode } from "react";
import { Button } from "@/ui/Button";
import { TextArea } from "@/ui/Field";
import { Markdown } from "@/ui/Markdown";
import { Note } from "@/ui/Note";
import { AnswerFields } from "./AnswerFields";
import { jsonOrText, type RequestAnswer, useAnswerDraft } from "./answerDraft";
import styles from "./RequestForm.module.css";
import { actionLabel, type RequestFields } from "./requestFields";
import { ToolAbout } from "./ToolAbout";

type RequestFormProps = {
  /** See `draftKey`. */
  draftKey: string;
  request: RequestFields;
  onAnswer: (answer: RequestAnswer) => void;
  isSending: boolean;
  /** Why the last answer was not taken, and the way out. */
  problem?: ReactNode;
  /** What is wrong with the form of the last answer, by field. */
  errors?: Readonly<Record<string, string>>;
  /** What is asked about, above the buttons. */
  children?: ReactNode;
};

/** What a step asks a person, and the buttons that answer it. */
export function RequestForm(props: RequestFormProps) {
  const { request, problem } = props;
  if (request.kind === "timer") return <p>This step waits for a time, not for you.</p>;
  return (
    <div className={styles.form}>
      {request.prompt && <Markdown text={request.prompt} />}
      {request.tool && <ToolAbout tool={request.tool} withoutName />}
      {props.children}
      {request.actions.length > 0 ? <Decision {...props} /> : <FreeAnswer {...props} />}
      {problem && (
        <Note kind="error" alert>
          {problem}
        </Note>
      )}
    </div>
  );
}

function Decision({ draftKey, request, onAnswer, isSending, errors }: RequestFormProps) {
  const draft = useAnswerDraft(draftKey, request);
  const reason = whyNotSent(isSending, draft.isBroken);
  return (
    <>
      <AnswerFields request={request} draft={draft} errors={errors} />
      <div className={styles.actions} data-actions>
        {request.actions.map((action, index) => (
          <Button
            key={action}
            kind={index === 0 ? "primary" : "plain"}
            disabledReason={index === 0 ? reason : undefined}
            onClick={() => !reason && onAnswer(draft.answerWith(action))}
          >
            {actionLabel(action)}
          </Button>
        ))}
      </div>
    </>
  );
}

/** Returns why a decision cannot be sent now. */
export function whyNotSent(isSending: boolean, isBroken: boolean): string | undefined {
  if (isBroken) return "What is edited above is not complete.";
  return isSending ? "Sending …" : undefined;
}

function FreeAnswer({ draftKey, request, onAnswer, isSending }: RequestFormProps) {
  const draft = useAnswerDraft(draftKey, request);
  const text = draft.text ?? "";
  return (
    <>
      <TextArea
        label="Answer"
        hint="JSON is passed on as JSON, anything else as text."
        value={text}
        onChange={(event) => draft.setText(event.target.value)}
      />
      <div className={styles.actions} data-actions>
        <Button
          kind="primary"
          disabledReason={whyNotSent(isSending, false)}
          onClick={() => onAnswer({ answer: jsonOrText(text) })}
        >
          Answer
        </Button>
      </div>
    </>
  );
}
