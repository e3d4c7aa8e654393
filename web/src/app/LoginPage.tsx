import { useEffect, useRef, useState } from "react";
import { errorText } from "@/api/errorText";
import { ApiError } from "@/api/http";
import { useLogin } from "@/api/mutations";
import { useSession } from "@/api/session";
import styles from "@/app/Layout.module.css";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { usePageTitle } from "@/ui/pageTitle";

/** The login with the token of the service; then the page that needed it is shown. */
export function LoginPage() {
  const [token, setToken] = useState("");
  const login = useLogin();
  const field = useRef<HTMLInputElement>(null);
  usePageTitle("Log in");
  useEffect(() => field.current?.focus(), []);
  return (
    <form
      className={styles.message}
      onSubmit={(event) => {
        event.preventDefault();
        login.mutate(token, {
          onSuccess: () => useSession.setState({ needsLogin: false, isLoggedIn: true }),
        });
      }}
    >
      <h1>Log in</h1>
      <p>This planwave takes requests with its token only. A cookie keeps the login for a week.</p>
      <div className={styles.field}>
        <TextField
          label="Token"
          type="password"
          autoComplete="current-password"
          required
          value={token}
          ref={field}
          error={login.error ? problemOf(login.error) : undefined}
          hint="The value of PLANWAVE_TOKEN where planwave serve runs."
          onChange={(event) => {
            setToken(event.target.value);
            login.reset();
          }}
        />
      </div>
      <Button
        type="submit"
        kind="primary"
        disabledReason={login.isPending ? "Asking the service" : undefined}
      >
        Log in
      </Button>
    </form>
  );
}

function problemOf(error: Error): string {
  const isRefused = error instanceof ApiError && error.status === 401;
  return isRefused ? "This is not the token of this planwave." : errorText(error);
}
