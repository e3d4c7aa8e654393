import { useState } from "react";
import type { PlanQuestion } from "@/api/types";
import styles from "@/screens/goal/PlanQuestions.module.css";
import { Button } from "@/ui/Button";
import { Chip } from "@/ui/Chip";
import { TextField } from "@/ui/Field";
import { formatAmount } from "@/ui/format";

/** The most characters of an answer, as the service takes them. */
const ANSWER_CHARS = 500;

interface PlanQuestionsProps {
  questions: readonly PlanQuestion[];
  /** The answers that the plan is written under are taken. */
  onTake: () => void;
  /** Some answers are others: by question, all of them. */
  onAnswer: (answers: Record<string, string>) => void;
}

/** A form with what the goal leaves open, filled in with the answers that the plan is written under. */
export function PlanQuestions({ questions, onTake, onAnswer }: PlanQuestionsProps) {
  const [drafts, setDrafts] = useState<Record<string, string>>({});
  const answerOf = ({ question, answer }: PlanQuestion) => drafts[question]?.trim() || answer;
  const isChanged = questions.some((each) => answerOf(each) !== each.answer);
  const write = (question: string, answer: string) => setDrafts({ ...drafts, [question]: answer });
  return (
    <form
      className={styles.questions}
      aria-label="What the goal leaves open"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isChanged) return onTake();
        onAnswer(Object.fromEntries(questions.map((each) => [each.question, answerOf(each)])));
      }}
    >
      <h2>The goal leaves {formatAmount(questions.length, "thing")} open</h2>
      <p className={styles.lead}>
        The plan is written under these answers. With others it is written again.
      </p>
      {questions.map((each) => (
        <div key={each.question} className={styles.question}>
          <TextField
            label={each.question}
            dir="auto"
            maxLength={ANSWER_CHARS}
            placeholder={each.answer}
            value={drafts[each.question] ?? each.answer}
            onChange={(event) => write(each.question, event.target.value)}
          />
          {each.options.length > 0 && (
            <fieldset className={styles.options} aria-label={each.question}>
              {each.options.map((option) => (
                <Chip
                  key={option}
                  className={styles.option}
                  aria-pressed={answerOf(each) === option}
                  onClick={() => write(each.question, option)}
                >
                  <bdi>{option}</bdi>
                </Chip>
              ))}
            </fieldset>
          )}
        </div>
      ))}
      <Button type="submit" kind="primary">
        {isChanged ? "Plan with these answers" : "Take these answers"}
      </Button>
    </form>
  );
}

/** The answers under which a plan is written, above it. */
export function PlanAnswers({
  questions,
  onChange,
}: Pick<PlanQuestionsProps, "questions"> & { onChange: () => void }) {
  return (
    <section className={styles.answers} aria-label="Answers to what the goal leaves open">
      <dl>
        {questions.map(({ question, answer, assumed }) => (
          <div key={question}>
            <dt dir="auto">{question}</dt>
            <dd>
              <bdi>{answer}</bdi>
              <span className={styles.by}>{assumed ? "assumed" : "your answer"}</span>
            </dd>
          </div>
        ))}
      </dl>
      <Button small icon="edit" onClick={onChange}>
        Change an answer
      </Button>
    </section>
  );
}
