import { TextArea, TextField } from "@/ui/Field";
import { LIMIT_NAMES, usedWords } from "@/ui/format";
import { SchemaForm } from "@/ui/SchemaForm";
import { Tag } from "@/ui/Tag";
import styles from "./AnswerFields.module.css";
import { AnswerValue } from "./AnswerValue";
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
      <AnswerValue request={request} draft={draft} errors={errors} />
      {request.actions.includes(GIVE_RESULT) && (
        <TextArea
          label="Result"
          hint="For “Give result”: JSON is passed on as JSON, anything else as text."
          value={draft.text ?? ""}
          onChange={(event) => draft.setText(event.target.value || null)}
        />
      )}
      <Limits request={request} draft={draft} />
      {request.form && (
        <SchemaForm
          schema={request.form}
          value={draft.form}
          onChange={draft.setForm}
          errors={errors}
          tag={(field) => (field.required ? <Tag>required</Tag> : undefined)}
        />
      )}
      <TextArea
        label="Note"
        hint={
          request.tool && request.actions.includes("reject")
            ? "Kept with the answer. If you reject, the agent reads it."
            : "Kept with the answer."
        }
        rows={2}
        value={draft.note}
        onChange={(event) => draft.setNote(event.target.value)}
      />
    </>
  );
}

/** The new limits of a budget, at first those that suffice; those that are left empty stay. */
function Limits({ request, draft }: AnswerFieldsProps) {
  const limits = Object.entries(request.limits);
  if (limits.length === 0) return null;
  return (
    <div className={styles.limits}>
      {limits.map(([name, most]) => (
        <TextField
          key={name}
          type="number"
          min={0}
          step="any"
          label={`New limit: ${LIMIT_NAMES[name] ?? name}`}
          hint={`Used: ${usedWords(name, request.used[name] ?? 0, most)}. Empty keeps it.`}
          value={draft.limits[name] ?? String(request.proposed[name] ?? "")}
          onChange={(event) => draft.setLimit(name, event.target.value)}
        />
      ))}
    </div>
  );
}
