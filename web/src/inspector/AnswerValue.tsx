import { writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { TextArea } from "@/ui/Field";
import { Markdown } from "@/ui/Markdown";
import { SchemaForm } from "@/ui/SchemaForm";
import { Tag } from "@/ui/Tag";
import styles from "./AnswerValue.module.css";
import type { AnswerDraft } from "./answerDraft";
import { hasForm, type RequestFields } from "./requestFields";

type AnswerValueProps = {
  request: RequestFields;
  draft: AnswerDraft;
  /** What is wrong with it, by field. */
  errors: Readonly<Record<string, string>>;
};

/** What goes on with the answer: to be read, and edited where the step allows it. */
export function AnswerValue({ request, draft, errors }: AnswerValueProps) {
  const { value } = request;
  if (value === undefined || value === null) return null;
  const original = typeof value === "string" ? value : writeJson(value, 2);
  const name = request.tool ? "Arguments" : "What is passed on";
  return (
    <section className={styles.value} aria-label={name}>
      <header>
        <b>{name}</b>
        {isChanged(draft, original) && <Tag kind="change">changed by you</Tag>}
        <EditButtons request={request} draft={draft} original={original} />
      </header>
      <Content {...{ request, draft, errors, name, original }} />
    </section>
  );
}

function isChanged({ text, fields }: AnswerDraft, original: string): boolean {
  if (fields !== null) return writeJson(fields, 2) !== original;
  return text !== null && text !== original;
}

type EditProps = Omit<AnswerValueProps, "errors"> & { original: string };

/** Arguments are edited in a form of their schema or, as anything else, as text. */
function EditButtons({ request, draft, original }: EditProps) {
  const { text, setText, fields, setFields } = draft;
  const isRead = text === null && fields === null;
  const startForm = () => setFields(request.value as Record<string, unknown>);
  if (isRead) {
    return (
      request.isEditable && (
        <Button small icon="edit" onClick={hasForm(request) ? startForm : () => setText(original)}>
          Edit first
        </Button>
      )
    );
  }
  return (
    <>
      {fields !== null && (
        <Button
          small
          kind="quiet"
          onClick={() => {
            setText(writeJson(fields, 2));
            setFields(null);
          }}
        >
          As JSON
        </Button>
      )}
      <Button
        small
        kind="quiet"
        onClick={() => {
          setText(null);
          setFields(null);
        }}
      >
        Keep it as it was
      </Button>
    </>
  );
}

type ContentProps = AnswerValueProps & { name: string; original: string };

function Content({ request, draft, errors, name, original }: ContentProps) {
  const { text, setText, isBroken, fields, setFields, setBroken } = draft;
  if (fields !== null && request.valueSchema !== null) {
    return (
      <div className={styles.fields}>
        <SchemaForm
          schema={request.valueSchema}
          value={fields}
          onChange={setFields}
          onBroken={setBroken}
          errors={errors}
        />
      </div>
    );
  }
  if (text !== null) {
    return (
      <TextArea
        label={`${name}, edited`}
        hiddenLabel
        rows={8}
        value={text}
        error={isBroken ? "This is not JSON." : undefined}
        onChange={(event) => setText(event.target.value)}
      />
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <section className={styles.text} aria-label="Text" tabIndex={0}>
      {typeof request.value === "string" ? <Markdown text={original} /> : <pre>{original}</pre>}
    </section>
  );
}
