import { type ReactNode, type RefObject, useMemo } from "react";
import type { AnswerResponse, PendingRequest } from "@/api/types";
import { answererWords, answerWords, readAnswer, statusOfAnswer } from "@/inspector/answerWords";
import { actionLabel, readRequest } from "@/inspector/requestFields";
import { writeJson } from "@/json";
import { formatDuration, formatInstant } from "@/ui/format";
import { Markdown } from "@/ui/Markdown";
import { Status } from "@/ui/Status";
import { schemaFields } from "@/ui/schema";
import { ChangeRequest } from "./ChangeRequest";
import { PlanRequest } from "./PlanRequest";
import styles from "./RequestDetail.module.css";
import { RequestHeader } from "./RequestHeader";
import { PLAN_APPROVAL, titleOf } from "./requestWords";
import { useRequestGraph } from "./useRequestGraph";

type AnsweredDetailProps = {
  request: PendingRequest;
  answered: AnswerResponse;
  /** The element that takes the focus when the request is opened. */
  place: RefObject<HTMLElement | null>;
  isPage: boolean;
  onMove: (step: 1 | -1) => void;
};

/** One request that is over: what was asked, and what was answered. */
export function AnsweredDetail(props: AnsweredDetailProps) {
  const { request, answered, place, isPage, onMove } = props;
  const fields = useMemo(() => readRequest(request), [request]);
  const { graph } = useRequestGraph(request);
  const { decision, note, value, form } = useMemo(() => readAnswer(answered), [answered]);
  const labels = new Map(schemaFields(fields.form ?? {}).map((field) => [field.name, field.label]));
  const given = value === undefined ? fields.value : value;
  const givenTitle = value === undefined ? "What was passed on" : "What was answered";
  return (
    <section ref={place} className={styles.detail} aria-label="Request" tabIndex={-1}>
      <RequestHeader
        {...{ request, isPage, onMove }}
        tab="answered"
        title={titleOf(request, fields)}
        status={<Status status={statusOfAnswer(answered)}>{answerWords(answered)}</Status>}
      />
      <div className={styles.body}>
        <div className={styles.text}>
          {fields.kind === PLAN_APPROVAL ? (
            <PlanRequest request={request} graph={graph} />
          ) : (
            fields.prompt && <Markdown text={fields.prompt} />
          )}
          <ChangeRequest request={request} graph={graph} />
          {given !== undefined && given !== null && (
            <section className={styles.given} aria-label={givenTitle}>
              <h3>{givenTitle}</h3>
              {typeof given === "string" ? (
                <Markdown text={given} />
              ) : (
                <pre>{writeJson(given, 2)}</pre>
              )}
            </section>
          )}
        </div>
        <aside className={styles.facts} aria-label="About this answer">
          <dl className={styles.next}>
            {decision !== null && <Fact name="Decision">{actionLabel(decision)}</Fact>}
            <Fact name="By">{answererWords(answered)}</Fact>
            <Fact name="When">{formatInstant(new Date(answered.at))}</Fact>
            <Fact name="After">{waitOf(request, answered)}</Fact>
            {note && <Fact name="Note">{note}</Fact>}
            {form.map(([name, each]) => (
              <Fact key={name} name={labels.get(name) ?? name}>
                {typeof each === "string" ? each : writeJson(each)}
              </Fact>
            ))}
          </dl>
        </aside>
      </div>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function waitOf({ since }: PendingRequest, { at }: AnswerResponse): string {
  return formatDuration(Math.max(0, (Date.parse(at) - Date.parse(since)) / 1000));
}
