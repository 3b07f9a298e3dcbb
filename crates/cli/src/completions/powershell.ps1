Register-ArgumentCompleter -Native -CommandName 'NAME' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # The words as they were typed: a TAB runs nothing of them.
    $words = @(foreach ($element in $commandAst.CommandElements) {
        if ($element.Extent.StartOffset -ge $cursorPosition) { break }
        if ($element.Extent.EndOffset -ge $cursorPosition) { $wordToComplete }
        elseif ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $element.Value }
        else { $element.Extent.Text }
    })
    # The index of the word at the cursor; an empty word need not arrive as an argument.
    $index = $words.Count
    if ($wordToComplete -ne '') { $index -= 1 }

    $before = $env:VARIABLE, $env:_CLAP_COMPLETE_INDEX
    try {
        $env:VARIABLE = 'powershell'
        $env:_CLAP_COMPLETE_INDEX = $index
        $found = & 'PROGRAM' -- @words 2>$null
    }
    finally {
        $env:VARIABLE, $env:_CLAP_COMPLETE_INDEX = $before
    }
    foreach ($line in $found) {
        $value, $help = $line -split "`t", 2
        if (-not $help) { $help = $value }
        # A file's name may hold what PowerShell would run.
        $text = if ($value -match '[^\w./:=,+%~-]') { "'" + $value.Replace("'", "''") + "'" } else { $value }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $help)
    }
}
