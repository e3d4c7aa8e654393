import { Button } from "@/ui/Button";
import { TextArea, TextField } from "@/ui/Field";
import { amountWords, LIMIT_NAMES } from "@/ui/format";
import { Markdown } from "@/ui/Markdown";
import { SchemaForm } from "@/ui/SchemaForm";
import { Tag } from "@/ui/Tag";
import styles from "./AnswerFields.module.css";
import { type AnswerDraft, GIVE_RESULT } from "./answerDraft";
import type { RequestFields } from "./requestFields";

type AnswerFieldsProps = {
  request: RequestFields;
  draft: AnswerDraft;
  /** What is wrong with the form, by field. */
  errors?: Readonly<Record<string, string>> | undefined;
};

/** What belongs to a decision: the value that goes on, the form, and a note. */
export function AnswerFields({ request, draft, errors = {} }: AnswerFieldsProps) {
  return (
    <>
      <Value request={request} draft={draft} />
      {request.actions.includes(GIVE_RESULT) && (
        <TextArea
          label="Result"
          hint="For “Give result”: JSON is passed on as JSON, anything else as text."
          value={draft.text ?? ""}
          onChange={(event) => draft.setText(event.target.value || null)}
        />
      )}
      {Object.entries(request.limits).map(([name, most]) => (
        <TextField
          key={name}
          type="number"
          min={0}
          step="any"
          label={`New limit: ${LIMIT_NAMES[name] ?? name}`}
          hint={`Now ${amountWords(name, most)}; empty keeps it.`}
          value={draft.limits[name] ?? ""}
          onChange={(event) => draft.setLimit(name, event.target.value)}
        />
      ))}
      {request.form && (
        <SchemaForm
          schema={request.form}
          value={draft.form}
          onChange={draft.setForm}
          errors={errors}
        />
      )}
      <TextArea
        label="Note"
        hint="Kept with the answer."
        rows={2}
        value={draft.note}
        onChange={(event) => draft.setNote(event.target.value)}
      />
    </>
  );
}

/** What goes on with the answer: to be read, and edited where the step allows it. */
function Value({ request, draft: { text, setText, isBroken } }: AnswerFieldsProps) {
  const { value } = request;
  if (value === undefined || value === null) return null;
  const original = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <section className={styles.value} aria-label="What is passed on">
      <header>
        <b>What is passed on</b>
        {text !== null && text !== original && <Tag kind="change">changed by you</Tag>}
        {request.isEditable && text === null && (
          <Button small icon="edit" onClick={() => setText(original)}>
            Edit first
          </Button>
        )}
        {text !== null && (
          <Button small kind="quiet" onClick={() => setText(null)}>
            Keep it as it was
          </Button>
        )}
      </header>
      {text !== null ? (
        <TextArea
          label="What is passed on, edited"
          hiddenLabel
          rows={8}
          value={text}
          error={isBroken ? "This is not JSON." : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
        <section className={styles.text} aria-label="Text" tabIndex={0}>
          {typeof value === "string" ? <Markdown text={original} /> : <pre>{original}</pre>}
        </section>
      )}
    </section>
  );
}
