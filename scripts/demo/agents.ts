/**
 * The real agents: how each is configured for the mock model, started without a terminal, and how its tools are
 * called. Read from the source and the requests of the versions pinned in agents/.
 */
import type { Action, ToolCall } from './mock-model.ts';

export interface Agent {
  name: 'pi' | 'codex' | 'gemini-cli' | 'opencode' | 'claude-code' | 'openclaw';
  /** Arguments for one prompt and no terminal; an agent that can, goes on with the transcript in file `session`, if given. */
  args(prompt: string, session?: string): string[];
  /** The program's file, relative to its node_modules; started by `node` if its name ends in `.js` or `.mjs`. */
  program: string;
  /** Another node for it than the one that runs this, relative to its node_modules. */
  node?: string;
  /** The variable that moves the agent's home, and where that is without it, relative to the person's home. */
  homeVariable: string;
  defaultHome: string;
  /** Files that must stand in the agent's home before it starts: relative path to content. */
  homeFiles(modelUrl: string): Record<string, string>;
  env(modelUrl: string): Record<string, string>;
  toolCall(action: Action): ToolCall;
}

const MODEL_KEY = 'no-key-needed';

/** Shell text that writes `content` to `path`. */
function heredoc(path: string, content: string): string {
  return `cat > '${path}' <<'END_OF_FILE'\n${content.replace(/\n?$/, '\n')}END_OF_FILE`;
}

/** pi's tools, which OpenClaw has too, but for the shell's name. */
function piTools(shell: string): Agent['toolCall'] {
  return (action) => {
    switch (action.kind) {
      case 'read':
        return { name: 'read', args: { path: action.path } };
      case 'write':
        return { name: 'write', args: { path: action.path, content: action.content } };
      case 'edit':
        return {
          name: 'edit',
          args: { path: action.path, edits: [{ oldText: action.from, newText: action.to }] },
        };
      case 'shell':
        return { name: shell, args: { command: action.command } };
    }
  };
}

export const pi: Agent = {
  name: 'pi',
  homeVariable: 'PI_CODING_AGENT_DIR',
  defaultHome: '.pi/agent',
  program: '@mariozechner/pi-coding-agent/dist/cli.js',
  args: (prompt, session) => [
    ...['--print', '--offline', '--provider', 'mock', '--model', 'mock', '--no-extensions', '--no-skills'],
    ...(session === undefined ? [] : ['--session', session]),
    prompt,
  ],
  homeFiles: (modelUrl) => ({
    'models.json': JSON.stringify({
      providers: {
        mock: {
          baseUrl: `${modelUrl}/v1`,
          api: 'openai-completions',
          apiKey: MODEL_KEY,
          models: [{ id: 'mock' }],
        },
      },
    }),
  }),
  env: () => ({ PI_TELEMETRY: '0' }),
  toolCall: piTools('bash'),
};

/**
 * A native program; its home holds SQLite databases in WAL mode beside append-only transcripts. With the sandbox
 * `workspace-write` it runs each tool under bubblewrap, with .git read-only.
 */
export const codex = (sandbox: 'danger-full-access' | 'workspace-write'): Agent => ({
  name: 'codex',
  homeVariable: 'CODEX_HOME',
  defaultHome: '.codex',
  program: '@openai/codex/bin/codex.js',
  args: (prompt) => ['exec', '--skip-git-repo-check', '--color', 'never', prompt],
  homeFiles: (modelUrl) => ({
    'config.toml': [
      'model = "mock"',
      'model_provider = "mock"',
      'approval_policy = "never"',
      `sandbox_mode = "${sandbox}"`,
      'check_for_update_on_startup = false',
      'web_search = "disabled"',
      '[analytics]',
      'enabled = false',
      '[model_providers.mock]',
      'name = "mock"',
      `base_url = "${modelUrl}/v1"`,
      'wire_api = "responses"',
      '',
    ].join('\n'),
  }),
  env: () => ({}),
  toolCall(action) {
    // A login shell would read the machine's profile, and lose the PATH that finds this node.
    const shell = (cmd: string): ToolCall => ({ name: 'exec_command', args: { cmd, login: false } });
    switch (action.kind) {
      case 'read':
        return shell(`cat '${action.path}'`);
      case 'write':
        return shell(heredoc(action.path, action.content));
      case 'edit': {
        const hunk = `*** Update File: ${action.path}\n@@\n-${action.from}\n+${action.to}`;
        return shell(`apply_patch <<'END_OF_PATCH'\n*** Begin Patch\n${hunk}\n*** End Patch\nEND_OF_PATCH`);
      }
      case 'shell':
        return shell(action.command);
    }
  },
});

export const geminiCli: Agent = {
  name: 'gemini-cli',
  homeVariable: 'GEMINI_CLI_HOME',
  defaultHome: '.',
  program: '@google/gemini-cli/bundle/gemini.js',
  args: (prompt) => ['--skip-trust', '--yolo', '--model', 'gemini-2.5-pro', '--prompt', prompt],
  homeFiles: () => ({
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      // Otherwise its read_file refuses the example workspace's memory, which git ignores.
      context: { fileFiltering: { respectGitIgnore: false } },
    }),
  }),
  env: (modelUrl) => ({
    GEMINI_API_KEY: MODEL_KEY,
    GOOGLE_GEMINI_BASE_URL: modelUrl,
  }),
  toolCall(action) {
    switch (action.kind) {
      case 'read':
        return { name: 'read_file', args: { file_path: action.path } };
      case 'write':
        return { name: 'write_file', args: { file_path: action.path, content: action.content } };
      case 'edit':
        return {
          name: 'replace',
          args: {
            file_path: action.path,
            instruction: 'as agreed',
            old_string: action.from,
            new_string: action.to,
          },
        };
      case 'shell':
        return { name: 'run_shell_command', args: { command: action.command, description: 'as asked' } };
    }
  },
};

/** A native program (Bun) with a SQLite database in WAL mode, a git directory for snapshots, and logs. */
export const opencode: Agent = {
  name: 'opencode',
  homeVariable: 'OPENCODE_TEST_HOME',
  defaultHome: '.',
  program: 'opencode-linux-x64-baseline/bin/opencode',
  args: (prompt) => ['run', '--model', 'mock/mock', prompt],
  homeFiles: (modelUrl) => ({
    '.config/opencode/opencode.json': JSON.stringify({
      autoupdate: false,
      share: 'disabled',
      permission: 'allow',
      small_model: 'mock/mock',
      provider: {
        mock: {
          npm: '@ai-sdk/openai-compatible',
          name: 'mock',
          options: { baseURL: `${modelUrl}/v1`, apiKey: MODEL_KEY },
          models: { mock: { name: 'mock', tool_call: true } },
        },
      },
    }),
  }),
  env: () => ({
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    // Otherwise it installs its plugin interface from the registry into its configuration, at each start.
    npm_config_offline: 'true',
  }),
  toolCall(action) {
    switch (action.kind) {
      case 'read':
        return { name: 'read', args: { filePath: action.path } };
      case 'write':
        return { name: 'write', args: { filePath: action.path, content: action.content } };
      case 'edit':
        return {
          name: 'edit',
          args: { filePath: action.path, oldString: action.from, newString: action.to },
        };
      case 'shell':
        return { name: 'bash', args: { command: action.command, description: 'as asked' } };
    }
  },
};

/** A native program (Bun) without a database: transcripts, locks and settings in many small files. */
export const claudeCode: Agent = {
  name: 'claude-code',
  homeVariable: 'CLAUDE_CONFIG_DIR',
  defaultHome: '.claude',
  program: '@anthropic-ai/claude-code-linux-x64/claude',
  args: (prompt) => ['--print', '--allowedTools', 'Bash,Edit,Read', '--', prompt],
  homeFiles: () => ({ 'settings.json': '{}\n' }),
  env: (modelUrl) => ({
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: MODEL_KEY,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
  toolCall(action) {
    const shell = (command: string): ToolCall => ({
      name: 'Bash',
      args: { command, description: 'as asked' },
    });
    switch (action.kind) {
      case 'read':
        return { name: 'Read', args: { file_path: action.path } };
      case 'write':
        // Its own tool writes over no file that it has not read.
        return shell(heredoc(action.path, action.content));
      case 'edit':
        return {
          name: 'Edit',
          args: { file_path: action.path, old_string: action.from, new_string: action.to },
        };
      case 'shell':
        return shell(action.command);
    }
  },
};

/**
 * Needs a newer Node than forget is tested with, which its recipe brings. Two SQLite databases in WAL mode, written by
 * worker threads, and locks that are databases too; a log in /tmp/openclaw whatever TMPDIR says.
 */
export const openclaw: Agent = {
  name: 'openclaw',
  homeVariable: 'OPENCLAW_STATE_DIR',
  defaultHome: '.openclaw',
  program: 'openclaw/openclaw.mjs',
  node: `node-linux-${process.arch}/bin/node`,
  // Without --local it looks for a gateway, a daemon.
  args: (prompt) => ['agent', '--local', '--session-id', 'demo', '--message', prompt],
  homeFiles: (modelUrl) => ({
    'openclaw.json': JSON.stringify({
      models: {
        providers: {
          mock: {
            baseUrl: `${modelUrl}/v1`,
            api: 'openai-completions',
            apiKey: MODEL_KEY,
            models: [{ id: 'mock', name: 'mock', contextWindow: 128_000, maxTokens: 4096 }],
          },
        },
      },
      // Otherwise it works in a workspace of its own, and fills it with files about itself.
      agents: { defaults: { workspace: '.', skipBootstrap: true, model: { primary: 'mock/mock' } } },
    }),
  }),
  env: () => ({}),
  toolCall: piTools('exec'),
};
