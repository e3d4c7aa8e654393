import { errorText } from "@/api/errorText";
import styles from "@/app/Layout.module.css";
import { useServiceState } from "@/app/serviceState";
import { Note } from "@/ui/Note";

/** The notice below the bar while the service refuses new work, with the reason. */
export function ServiceNotice() {
  const { refusal } = useServiceState();
  if (!refusal) return null;
  return (
    <div className={styles.notice}>
      <Note kind="warning" alert>
        {errorText(refusal)}
      </Note>
    </div>
  );
}
