import { useState } from "react";
import { useLogout } from "@/api/mutations";
import { useSession } from "@/api/session";
import { ErrorNote } from "@/screens/ErrorNote";
import styles from "@/screens/settings/SettingsScreen.module.css";
import { Button } from "@/ui/Button";
import { Note } from "@/ui/Note";
import { type Theme, usePreferences } from "@/ui/preferences";
import { Segmented } from "@/ui/Segmented";
import { Switch } from "@/ui/Switch";

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** The preferences that are stored in this browser only. */
export function BrowserSettings() {
  const { theme, setTheme, singleKeys, setSingleKeys } = usePreferences();
  return (
    <ul className={styles.rows}>
      <li className={styles.row}>
        <div className={styles.grow}>
          <h2>Theme</h2>
          <p className={styles.faint}>Light or dark pages.</p>
        </div>
        <Segmented label="Theme" value={theme} options={THEMES} onChange={setTheme} />
      </li>
      <li className={styles.row}>
        <div className={styles.grow}>
          <h2>Keys</h2>
          <p className={styles.faint}>
            Single letters and signs do something while no field has the focus; press ? for the
            list.
          </p>
        </div>
        <Switch label="Single letters" checked={singleKeys} onChange={setSingleKeys} />
      </li>
      <Notices />
      <Login />
    </ul>
  );
}

function Notices() {
  const { notices, setNotices } = usePreferences();
  const [isRefused, setRefused] = useState(false);
  const change = async (isOn: boolean) => {
    const permission = isOn ? await Notification.requestPermission() : "default";
    setRefused(permission === "denied");
    setNotices(permission === "granted");
  };
  return (
    <li className={styles.row}>
      <div className={styles.grow}>
        <h2>Notices</h2>
        <p className={styles.faint}>
          The browser tells when a run ends or asks, while this page is open but not seen.
        </p>
        {isRefused && (
          <Note kind="warning" alert>
            This browser shows no notices of this page: allow them in its settings for this address.
          </Note>
        )}
      </div>
      <Switch
        label="Tell me of runs"
        checked={notices}
        onChange={(isOn) => void change(isOn)}
        disabledReason={"Notification" in window ? undefined : "This browser has none"}
      />
    </li>
  );
}

function Login() {
  const isLoggedIn = useSession((session) => session.isLoggedIn);
  const logout = useLogout();
  if (!isLoggedIn) return null;
  const leave = () =>
    logout.mutate(undefined, {
      onSuccess: () => useSession.setState({ isLoggedIn: false, needsLogin: true }),
    });
  return (
    <li className={styles.row}>
      <div className={styles.grow}>
        <h2>Login</h2>
        <p className={styles.faint}>This browser has sent the token of the service.</p>
        {logout.error && <ErrorNote error={logout.error} />}
      </div>
      <Button onClick={leave} disabledReason={logout.isPending ? "Logging out" : undefined}>
        Log out
      </Button>
    </li>
  );
}
